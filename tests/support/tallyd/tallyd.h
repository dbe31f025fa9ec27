// Real tallyd processes on a database of a test's own, and what is needed to speak to them.
#pragma once

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tally/v1/calls.grpc.pb.h"
#include "tally/v1/parked.grpc.pb.h"
#include "tally/v1/permits.grpc.pb.h"
#include "tally/v1/receipts.grpc.pb.h"
#include "tally/v1/tenants.grpc.pb.h"
#include "tests/support/postgres/postgres.h"

namespace tally::test {

// One process, `tallyd serve`, on a data folder of its own. It ends with this object, or with the test program.
class Tallyd {
 public:
  explicit Tallyd(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}
  ~Tallyd();
  Tallyd(const Tallyd&) = delete;

  // Returns when it answers. Ends the program with its log if it does not within half a minute.
  void Start();
  void Kill();  // SIGKILL
  void Stop();  // SIGTERM, and waits
  std::string socket() const { return "unix:" + (data_dir_ / "tallyd.sock").string(); }
  // A new connection to it.
  std::shared_ptr<grpc::Channel> Channel() const;
  std::string Log() const;

 private:
  void End(int signal);

  const std::filesystem::path data_dir_;
  pid_t pid_ = -1;
};

// A database, replicas on it, and one tenant with a principal of each role.
class Fleet {
 public:
  // `lanes`: the [lanes] section of every replica's config.
  Fleet(Postgres& postgres, int count, const std::string& lanes = "");
  // One replica on the private PostgreSQL that it runs for itself.
  Fleet();

  Tallyd& replica(size_t i) { return *replicas_[i]; }
  size_t size() const { return replicas_.size(); }
  // Of a private PostgreSQL: as it runs now.
  std::string conninfo() const;
  // Kills the private PostgreSQL; its tallyd starts it again.
  void KillPrivatePostgres() { KillServer(folder_.data_dir()); }
  // Returns when it has been started again. Ends the program if it is not within a minute.
  void AwaitPrivatePostgres() const;
  const std::string& credential(v1::Role role) const { return credentials_[role]; }
  // Permit id and token of a new permit.
  v1::MintResponse Mint(v1::MintRequest request);
  // The permit's receipts as an auditor gets them, in order. Ends the program if they cannot be had.
  std::vector<v1::Receipt> Chain(const std::string& permit_id);
  // Verifies them as a set, with the published keys, up to a head asked for now; empty: good and whole. Says what is
  // wrong otherwise.
  std::string VerifyChain(const std::string& permit_id);

 private:
  void AddReplica(const std::filesystem::path& data_dir, const std::string& config);
  void MakePrincipals();

  ServerFolder folder_;
  std::string conninfo_;         // empty: a private PostgreSQL
  std::filesystem::path first_;  // the first replica's data folder
  std::vector<std::unique_ptr<Tallyd>> replicas_;
  std::array<std::string, 6> credentials_;
};

// Sets the credential, and a deadline.
void Prepare(grpc::ClientContext& context, const std::string& credential, int seconds = 30);

// The reason in google.rpc.ErrorInfo; empty: none.
std::string ReasonOf(const grpc::Status& status);

std::string RandomAttemptId();

}  // namespace tally::test
