#include "tests/support/tallyd/tallyd.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "lib/keys/hash.h"
#include "lib/receipt/verify_set.h"
#include "server/postgres/postmaster_file.h"
#include "server/postgres/process.h"
#include "server/postgres/settings.h"

namespace tally::test {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "issuer = \"test.example\"\nsweep_interval = \"200ms\"\n[lanes]\n";

[[noreturn]] void Die(const std::string& why) {
  std::cerr << why << std::endl;
  std::abort();
}

std::string Program(const std::string& name) {
  const char* folder = std::getenv("TALLY_BIN");
  if (folder == nullptr) Die("TALLY_BIN must name the folder of the programs under test");
  return std::string(folder) + "/" + name;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// Runs a shell command; its output, and its exit status in `status`.
std::string Shell(const std::string& command, int* status) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) Die("popen");
  std::array<char, 4096> buffer;
  while (size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), size);
  *status = WEXITSTATUS(pclose(pipe));
  return output;
}

void MustRun(const std::string& command) {
  int status = 0;
  const std::string output = Shell(command, &status);
  if (status != 0) Die(command + ": " + output);
}

}  // namespace

Tallyd::~Tallyd() { Kill(); }

void Tallyd::Start() {
  const std::string program = Program("tallyd");
  const std::string data_dir = data_dir_.string();
  const std::string log = (data_dir_ / "log").string();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(file, 1);
    dup2(file, 2);
    execl(program.c_str(), program.c_str(), "serve", "--data-dir", data_dir.c_str(), nullptr);
    _exit(127);
  }
  const auto patience = std::chrono::system_clock::now() + std::chrono::seconds(30);
  // A channel of a socket that is not there yet backs off for long; so a new one each time.
  while (!Channel()->WaitForConnected(std::chrono::system_clock::now() + std::chrono::milliseconds(200))) {
    if (std::chrono::system_clock::now() > patience || waitpid(pid_, nullptr, WNOHANG) == pid_) {
      Die("tallyd does not serve:\n" + Log());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Tallyd::End(int signal) {
  if (pid_ < 0) return;
  kill(pid_, signal);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Tallyd::Kill() { End(SIGKILL); }
void Tallyd::Stop() { End(SIGTERM); }

std::shared_ptr<grpc::Channel> Tallyd::Channel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(socket(), grpc::InsecureChannelCredentials(), arguments);
}

std::string Tallyd::Log() const { return ReadFile(data_dir_ / "log"); }

Fleet::Fleet(Postgres& postgres, int count, const std::string& lanes) : conninfo_(postgres.CreateDatabase()) {
  for (int i = 0; i < count; ++i) {
    AddReplica(folder_.path() / std::to_string(i), "database_url = '''" + conninfo_ + "'''\n" + kConfig + lanes + "\n");
  }
  MakePrincipals();
}

Fleet::Fleet() {
  AddReplica(folder_.data_dir(), kConfig);
  MakePrincipals();
}

void Fleet::AddReplica(const fs::path& data_dir, const std::string& config) {
  fs::create_directory(data_dir);
  fs::permissions(data_dir, fs::perms::owner_all);
  WriteFile(data_dir / "tallyd.toml", config);
  fs::permissions(data_dir / "tallyd.toml", fs::perms::owner_read | fs::perms::owner_write);
  if (replicas_.empty()) {
    MustRun(Program("tallyd") + " init --data-dir " + data_dir.string());
    first_ = data_dir;
  } else {
    fs::copy_file(first_ / "kek", data_dir / "kek");
    fs::permissions(data_dir / "kek", fs::perms::owner_read | fs::perms::owner_write);
  }
  replicas_.push_back(std::make_unique<Tallyd>(data_dir));
  replicas_.back()->Start();
}

void Fleet::MakePrincipals() {
  credentials_[v1::ADMIN] = ReadFile(first_ / "admin.credential");
  while (credentials_[v1::ADMIN].ends_with('\n')) credentials_[v1::ADMIN].pop_back();
  const auto tenants = v1::Tenants::NewStub(replica(0).Channel());
  v1::CreateTenantRequest tenant;
  tenant.set_name("acme");
  v1::CreateTenantResponse made;
  grpc::ClientContext context;
  Prepare(context, credentials_[v1::ADMIN]);
  if (const grpc::Status status = tenants->CreateTenant(&context, tenant, &made); !status.ok()) {
    Die("no tenant: " + status.error_message());
  }
  for (const v1::Role role : {v1::OPERATOR, v1::GATEWAY, v1::RECONCILER, v1::AUDITOR}) {
    v1::CreatePrincipalRequest request;
    request.set_tenant("acme");
    request.set_role(role);
    v1::CreatePrincipalResponse response;
    grpc::ClientContext asking;
    Prepare(asking, credentials_[v1::ADMIN]);
    if (const grpc::Status status = tenants->CreatePrincipal(&asking, request, &response); !status.ok()) {
      Die("no principal: " + status.error_message());
    }
    credentials_[role] = response.credential();
  }
}

std::string Fleet::conninfo() const {
  if (!conninfo_.empty()) return conninfo_;
  const auto file = postgres::ReadPostmasterFile(postgres::Layout(folder_.data_dir()).cluster);
  if (!file || !file->ready) Die("the private PostgreSQL does not run");
  return postgres::ConnectionParameter("host", file->sockets.string()) + " port=" + std::to_string(postgres::kPort) +
         " user=" + postgres::kRole + " dbname=" + postgres::kDatabase;
}

void Fleet::AwaitPrivatePostgres() const {
  for (int tries = 0; tries < 6000; ++tries) {
    // The file of one that was killed stays behind: it counts only with its process.
    const auto file = postgres::ReadPostmasterFile(postgres::Layout(folder_.data_dir()).cluster);
    if (file && file->ready && postgres::Process::Find(file->pid)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Die("the private PostgreSQL was not started again");
}

v1::MintResponse Fleet::Mint(v1::MintRequest request) {
  request.set_tenant("acme");
  v1::MintResponse response;
  grpc::ClientContext context;
  Prepare(context, credential(v1::OPERATOR));
  const grpc::Status status = v1::Permits::NewStub(replica(0).Channel())->Mint(&context, request, &response);
  if (!status.ok()) Die("no permit: " + status.error_message());
  return response;
}

std::vector<v1::Receipt> Fleet::Chain(const std::string& permit_id) {
  v1::ListReceiptsRequest request;
  request.set_permit_id(permit_id);
  grpc::ClientContext context;
  Prepare(context, credential(v1::AUDITOR), 120);
  const auto receipts = v1::Receipts::NewStub(replica(0).Channel());
  const auto reader = receipts->List(&context, request);
  std::vector<v1::Receipt> chain;
  for (v1::Receipt receipt; reader->Read(&receipt);) chain.push_back(std::move(receipt));
  if (const grpc::Status status = reader->Finish(); !status.ok()) Die("no receipts: " + status.error_message());
  return chain;
}

std::string Fleet::VerifyChain(const std::string& permit_id) {
  const auto receipts = v1::Receipts::NewStub(replica(0).Channel());
  grpc::ClientContext asking_keys, asking_head;
  Prepare(asking_keys, credential(v1::AUDITOR));
  Prepare(asking_head, credential(v1::AUDITOR));
  v1::KeysResponse published;
  if (const auto status = receipts->Keys(&asking_keys, {}, &published); !status.ok()) return status.error_message();
  std::vector<keys::KnownKey> known;
  for (const v1::PublishedKey& key : published.keys()) known.push_back({.name = key.name(), .bytes = key.public_key()});

  std::vector<receipt::Input> inputs;
  for (v1::Receipt& receipt : Chain(permit_id))
    inputs.push_back({std::to_string(inputs.size() + 1), std::move(receipt)});
  v1::HeadRequest request;
  request.set_permit_id(permit_id);
  v1::Receipt head;
  if (const auto status = receipts->Head(&asking_head, request, &head); !status.ok()) return status.error_message();
  inputs.push_back({"head", std::move(head)});

  const receipt::SetReport report = receipt::VerifySet(inputs, keys::KeyRing(std::move(known)));
  for (const receipt::ReceiptReport& one : report.receipts) {
    if (one.outcome != receipt::Outcome::kGood) return "receipt " + one.source + ": " + one.fault.value_or("not good");
  }
  if (report.chains.size() != 1) return std::to_string(report.chains.size()) + " chains";
  const receipt::ChainReport& chain = report.chains.front();
  if (!chain.faults.empty()) return chain.faults.front();
  if (!chain.complete || chain.receipts + 1 != inputs.size()) return "the chain is not whole";
  return report.outcome == receipt::Outcome::kGood ? "" : std::string(receipt::OutcomeName(report.outcome));
}

void Prepare(grpc::ClientContext& context, const std::string& credential, int seconds) {
  context.AddMetadata("authorization", "Bearer " + credential);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status rich;
  google::rpc::ErrorInfo info;
  if (!rich.ParseFromString(status.error_details())) return "";
  for (const auto& detail : rich.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

std::string RandomAttemptId() { return keys::RandomBytes(16); }

}  // namespace tally::test
