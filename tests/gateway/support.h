// A real tally-gateway, a client that speaks to it, and a real MCP server behind it whose effects are lines in a file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/tallyd/tallyd.h"

namespace tally::test {

using Json = nlohmann::json;

// One tallyd for the whole program.
Fleet& TheFleet();

// A permit for everything the ledger server has, each act allowed `cap` times.
v1::MintResponse MintFor(const std::vector<std::string>& tools, int64_t cap = 1000);

void WriteFile(const std::filesystem::path& path, const std::string& text);  // mode 0600

// A folder that goes with this object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string ReadText(const std::filesystem::path& path);

// A child with its output in a file; SIGKILLed at the end.
class Process {
 public:
  Process(std::vector<std::string> argv, std::map<std::string, std::string> environment, std::filesystem::path output);
  ~Process();
  Process(const Process&) = delete;
  pid_t pid() const { return pid_; }
  void Kill(int signal);
  int Wait();  // its exit status, or 128 + signal; at most half a minute, then the program ends
  // The first line of its output that has `text` in it; ends the program if there is none in time.
  std::string AwaitLine(const std::string& text) const;

 private:
  const std::filesystem::path output_;
  pid_t pid_ = -1;
};

// A gateway with one upstream `led`, over stdio or HTTP.
class TestGateway {
 public:
  struct Options {
    bool http = false;          // the upstream's transport
    std::string upstream = "";  // more lines for [upstreams.led]
    std::string top = "";       // more lines for the config, top level tables
    std::string tallyd = "";    // another server than TheFleet()'s
    std::string server = "upstream.py";
    bool start = true;  // else Start() does it
  };
  TestGateway() : TestGateway(Options()) {}
  explicit TestGateway(Options options);

  int port() const { return port_; }
  void Start();
  Process& process() { return *process_; }
  const Folder& folder() const { return folder_; }
  // What was really done, without the server's notes about itself, which begin with '#'.
  std::vector<std::string> Effects() const;
  std::vector<std::string> Notes() const;
  // What the gateway that runs now has logged.
  std::string Log() const { return ReadText(log_); }
  std::string ConfigPath() const { return (folder_ / "gateway.toml").string(); }

 private:
  Folder folder_;
  std::unique_ptr<Process> upstream_;
  std::unique_ptr<Process> process_;
  std::filesystem::path log_;
  int port_ = 0;
};

// The path of tally-gateway.
std::string GatewayProgram();
// Runs a shell command to its end; its output, and its exit status in `status`.
std::string Shell(const std::string& command, int* status);

struct HttpAnswer {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // lower case
  std::string body;
  // The messages: of an event stream, or the body itself.
  std::vector<Json> messages;
  std::vector<std::string> event_ids;  // of an event stream
  // The message with a result or an error.
  Json answer() const;
};

// One request on one connection. With `hang_up_after_ms` the client goes away that long after it asked.
HttpAnswer Http(int port, const std::string& method, const std::map<std::string, std::string>& headers,
                const std::string& body = "", int hang_up_after_ms = 0, const std::string& path = "/mcp");

class McpClient {
 public:
  McpClient(int port, std::string token) : port_(port), token_(std::move(token)) {}

  HttpAnswer Initialize(const std::string& version = "2025-11-25", const Json& capabilities = Json::object());
  HttpAnswer Post(const std::string& body, std::map<std::string, std::string> more = {}, int hang_up_after_ms = 0);
  Json Request(const std::string& method, const Json& params = Json::object());
  // The result of a tools/call; a JSON-RPC error comes as {"error": …}.
  Json Call(const std::string& tool, const Json& arguments, const Json& meta = Json::object());
  std::map<std::string, std::string> Headers() const;
  const std::string& session() const { return session_; }

 private:
  const int port_;
  const std::string token_;
  std::string session_;
  std::string version_;
  int last_id_ = 0;
};

std::string TextOf(const Json& result);
// "delivery_uncertain", … of a refusal; empty for what is none.
std::string KindOf(const Json& result);

// Polls until it holds, for at most `seconds`.
bool Eventually(const std::function<bool()>& holds, int seconds = 20);

}  // namespace tally::test
