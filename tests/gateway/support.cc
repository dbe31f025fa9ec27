#include "tests/gateway/support.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace tally::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Die(const std::string& why) {
  std::cerr << why << std::endl;
  std::abort();
}

std::string SourceFolder() { return (fs::current_path() / "tests" / "gateway").string(); }

v1::Limit Unlimited() {
  v1::Limit limit;
  limit.set_unlimited(true);
  return limit;
}

// What a chunked body carries; stops at what is cut.
std::string Unchunked(std::string_view body) {
  std::string whole;
  while (true) {
    const size_t end = body.find("\r\n");
    if (end == body.npos) return whole;
    const size_t size = std::stoul(std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0) return whole;
    whole += body.substr(end + 2, size);
    if (body.size() < end + 2 + size + 2) return whole;
    body.remove_prefix(end + 2 + size + 2);
  }
}

void TakeEvents(const std::string& text, HttpAnswer& answer) {
  for (const absl::string_view block : absl::StrSplit(text, "\n\n")) {
    std::string data;
    for (const absl::string_view line : absl::StrSplit(block, '\n')) {
      if (absl::StartsWith(line, "data: ")) data += std::string(line.substr(6));
      if (absl::StartsWith(line, "id: ")) answer.event_ids.emplace_back(line.substr(4));
    }
    if (!data.empty()) answer.messages.push_back(Json::parse(data));
  }
}

HttpAnswer Parse(const std::string& bytes) {
  HttpAnswer answer;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.status = std::stoi(bytes.substr(9, 3));
  for (const absl::string_view line : absl::StrSplit(bytes.substr(0, end), "\r\n")) {
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] = std::string(line.substr(colon + 2));
  }
  answer.body = bytes.substr(end + 4);
  if (answer.headers["transfer-encoding"] == "chunked") answer.body = Unchunked(answer.body);
  if (answer.headers["content-type"] == "text/event-stream") {
    TakeEvents(answer.body, answer);
  } else if (answer.headers["content-type"] == "application/json") {
    answer.messages.push_back(Json::parse(answer.body));
  }
  return answer;
}

}  // namespace

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

Fleet& TheFleet() {
  static Fleet fleet(Postgres::Shared(), 1);
  return fleet;
}

v1::MintResponse MintFor(const std::vector<std::string>& tools, int64_t cap) {
  v1::MintRequest request;
  request.set_subject(absl::StrCat("agent-", absl::BytesToHexString(RandomAttemptId())));
  request.set_unit("USD/2");
  *request.mutable_budget() = Unlimited();
  request.set_expires_in_ms(3'600'000);
  for (const std::string& tool : tools) {
    v1::GrantTerms* grant = request.add_grants();
    grant->set_tool(tool);
    grant->mutable_cap()->set_at_most(cap);
    *grant->mutable_budget() = Unlimited();
  }
  return TheFleet().Mint(request);
}

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "tally-gateway-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) Die("mkdtemp");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Process::Process(std::vector<std::string> argv, std::map<std::string, std::string> environment, fs::path output)
    : output_(std::move(output)) {
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(file, 1);
    dup2(file, 2);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (std::string& argument : argv) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
}

Process::~Process() { Kill(SIGKILL), Wait(); }

void Process::Kill(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

int Process::Wait() {
  if (pid_ <= 0) return 0;
  int status = 0;
  if (!Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, 60))
    Die("a process does not end: " + ReadText(output_));
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Process::AwaitLine(const std::string& text) const {
  std::string found;
  const bool came = Eventually(
      [&] {
        std::istringstream lines(ReadText(output_));
        for (std::string line; std::getline(lines, line);) {
          if (line.find(text) == line.npos || lines.eof()) continue;
          found = line;
          return true;
        }
        return false;
      },
      60);
  if (!came) Die("no line with '" + text + "' in: " + ReadText(output_));
  return found;
}

TestGateway::TestGateway(Options options) {
  const std::string ledger = (folder_ / "ledger").string();
  const std::string server = SourceFolder() + "/" + options.server;
  std::string upstream;
  if (options.http) {
    upstream_ = std::make_unique<Process>(std::vector<std::string>{"python3", server, "--http"},
                                          std::map<std::string, std::string>{{"LEDGER", ledger}}, folder_ / "port");
    Eventually([&] { return ReadText(folder_ / "port").ends_with("\n"); });
    upstream = absl::StrCat("url = \"http://127.0.0.1:", std::stoi(ReadText(folder_ / "port")), "/mcp\"\n");
  } else {
    upstream = absl::StrCat("command = \"python3\"\nargs = [\"", server, "\"]\nenv = { LEDGER = \"", ledger, "\" }\n");
  }
  WriteFile(folder_ / "credential", TheFleet().credential(v1::GATEWAY) + "\n");
  const std::string tallyd = options.tallyd.empty() ? TheFleet().replica(0).socket() : options.tallyd;
  WriteFile(folder_ / "gateway.toml",
            absl::StrCat("shutdown_grace = \"2s\"\n[listen]\naddress = \"127.0.0.1:0\"\n[tallyd]\nserver = \"", tallyd,
                         "\"\ncredential_file = \"credential\"\ntimeout = \"3s\"\ntry_timeout = \"2s\"\n", options.top,
                         "\n[upstreams.led]\n", upstream, options.upstream, "\n"));
  if (options.start) Start();
}

void TestGateway::Start() {
  static int runs = 0;
  process_ = nullptr;
  log_ = folder_ / absl::StrCat("log-", ++runs);
  process_ = std::make_unique<Process>(std::vector<std::string>{GatewayProgram(), "serve", ConfigPath()},
                                       std::map<std::string, std::string>{}, log_);
  port_ = Json::parse(process_->AwaitLine("\"listening\""))["port"];
}

std::vector<std::string> TestGateway::Effects() const {
  std::vector<std::string> lines;
  std::istringstream text(ReadText(folder_ / "ledger"));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("#")) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> TestGateway::Notes() const {
  std::vector<std::string> lines;
  std::istringstream text(ReadText(folder_ / "ledger"));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("#")) lines.push_back(line);
  }
  return lines;
}

Json HttpAnswer::answer() const {
  for (const Json& message : messages) {
    if (message.contains("result") || message.contains("error")) return message;
  }
  return Json();
}

std::string GatewayProgram() {
  const char* programs = std::getenv("TALLY_BIN");
  if (programs == nullptr) Die("TALLY_BIN must name the folder of the programs under test");
  return absl::StrCat(programs, "/tally-gateway");
}

std::string Shell(const std::string& command, int* status) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), size);
  *status = WEXITSTATUS(pclose(pipe));
  return output;
}

HttpAnswer Http(int port, const std::string& method, const std::map<std::string, std::string>& headers,
                const std::string& body, int hang_up_after_ms, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval limit{.tv_sec = 60, .tv_usec = 0};
  if (hang_up_after_ms > 0) limit = {.tv_sec = hang_up_after_ms / 1000, .tv_usec = hang_up_after_ms % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return {};
  }
  std::string request = absl::StrCat(method, " ", path, " HTTP/1.1\r\nConnection: close\r\n");
  if (!headers.contains("Host")) absl::StrAppend(&request, "Host: 127.0.0.1:", port, "\r\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&request, name, ": ", value, "\r\n");
  if (!body.empty()) absl::StrAppend(&request, "Content-Length: ", body.size(), "\r\n");
  absl::StrAppend(&request, "\r\n", body);
  (void)!write(fd, request.data(), request.size());
  std::string bytes;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return Parse(bytes);
}

std::map<std::string, std::string> McpClient::Headers() const {
  std::map<std::string, std::string> headers = {{"Authorization", "Bearer " + token_},
                                                {"Accept", "application/json, text/event-stream"}};
  if (!session_.empty()) headers["Mcp-Session-Id"] = session_;
  if (!version_.empty()) headers["MCP-Protocol-Version"] = version_;
  return headers;
}

HttpAnswer McpClient::Post(const std::string& body, std::map<std::string, std::string> more, int hang_up_after_ms) {
  std::map<std::string, std::string> headers = Headers();
  headers["Content-Type"] = "application/json";
  for (auto& [name, value] : more) headers[name] = value;
  return Http(port_, "POST", headers, body, hang_up_after_ms);
}

HttpAnswer McpClient::Initialize(const std::string& version, const Json& capabilities) {
  const Json request = {{"jsonrpc", "2.0"},
                        {"id", "init"},
                        {"method", "initialize"},
                        {"params",
                         {{"protocolVersion", version},
                          {"capabilities", capabilities},
                          {"clientInfo", {{"name", "test"}, {"version", "1"}}}}}};
  HttpAnswer answer = Post(request.dump());
  if (answer.status == 200 && answer.answer().contains("result")) {
    session_ = answer.headers["mcp-session-id"];
    version_ = version;
    Post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }
  return answer;
}

Json McpClient::Request(const std::string& method, const Json& params) {
  const Json request = {{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", params}};
  const Json answer = Post(request.dump()).answer();
  if (answer.is_null()) return answer;
  return answer.contains("result") ? answer["result"] : Json{{"error", answer["error"]}};
}

Json McpClient::Call(const std::string& tool, const Json& arguments, const Json& meta) {
  Json params = {{"name", tool}, {"arguments", arguments}};
  if (!meta.empty()) params["_meta"] = meta;
  return Request("tools/call", params);
}

std::string TextOf(const Json& result) {
  if (!result.contains("content") || result["content"].empty()) return "";
  return result["content"][0].value("text", "");
}

std::string KindOf(const Json& result) {
  const Json* error = &result;
  for (const char* name : {"_meta", "dev.tallystick/error", "kind"}) {
    if (!error->is_object() || !error->contains(name)) return "";
    error = &(*error)[name];
  }
  return error->get<std::string>();
}

bool Eventually(const std::function<bool()>& holds, int seconds) {
  for (int i = 0; i < seconds * 20; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return holds();
}

}  // namespace tally::test
