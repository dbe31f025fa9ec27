#include "tests/doubt/cut_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string_view>

namespace tally::test {
namespace {

constexpr char kSocketName[] = ".s.PGSQL.5432";

sockaddr_un Address(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof(address.sun_path)) throw std::runtime_error("socket path too long");
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// What came, or empty: closed.
std::string Receive(int fd) {
  std::string bytes(65536, '\0');
  const ssize_t size = recv(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

// A simple query message: 'Q', length, text, NUL.
bool IsCommit(std::string_view bytes) {
  constexpr std::string_view kCommit(
      "Q\0\0\0\x0b"
      "COMMIT\0",
      12);
  return bytes.find(kCommit) != std::string_view::npos;
}

}  // namespace

CutProxy::CutProxy(std::filesystem::path socket_dir) : server_dir_(std::move(socket_dir)) {
  std::string name = "/tmp/cut-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = name;
  listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = Address(folder_ / kSocketName);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 16) != 0) {
    throw std::runtime_error("cannot listen");
  }
  threads_.emplace_back([this] { Serve(); });
}

CutProxy::~CutProxy() {
  stopping_ = true;
  threads_.front().join();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  close(listener_);
  std::filesystem::remove_all(folder_);
}

void CutProxy::Serve() {
  while (!stopping_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, 50) <= 0) continue;
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) continue;
    if (refusing_) {
      close(client);
      continue;
    }
    threads_.emplace_back([this, client] { Carry(client); });
  }
}

void CutProxy::Carry(int client) {
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = Address(server_dir_ / kSocketName);
  bool open = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  bool client_open = open;
  while (open && !stopping_) {
    pollfd ends[2] = {{client_open ? client : -1, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(ends, 2, 50) <= 0) continue;
    if (ends[0].revents != 0) {
      const std::string bytes = Receive(client);
      if (bytes.empty()) break;
      const Cut cut = IsCommit(bytes) ? cut_.exchange(Cut::kNothing) : Cut::kNothing;
      if (cut != Cut::kNothing && refuse_after_cut_) refusing_ = true;
      if (cut == Cut::kBeforeCommit) {
        ++cuts_;
        break;
      }
      open = SendAll(server, bytes);
      if (cut == Cut::kAfterCommit) Receive(server);
      if (cut != Cut::kNothing) {
        ++cuts_;
        close(client);
        client_open = false;
      }
    }
    if (ends[1].revents != 0) {
      const std::string bytes = Receive(server);
      if (bytes.empty()) break;
      if (client_open) open = SendAll(client, bytes);
      if (!client_open) break;
    }
  }
  if (client_open) close(client);
  close(server);
}

}  // namespace tally::test
