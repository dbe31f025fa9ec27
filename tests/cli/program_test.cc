// The program from outside: exit codes, documents on stdout, words on stderr. Authorize is answered by a real gRPC
// server that says what the test told it to; verifying needs none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "cli/json_form.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "lib/keys/key_file.h"
#include "lib/receipt/dsse.h"
#include "lib/receipt/jws.h"
#include "tally/v1/calls.grpc.pb.h"
#include "tests/cli/run_tally.h"
#include "tests/client/statuses.h"
#include "tests/receipt/story.h"

namespace tally::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// ---- Usage ----

TEST(Program, HelpAndVersionAreNoFailure) {
  EXPECT_EQ(RunTally({"--version"}).exit_code, 0);
  const Ran help = RunTally({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* noun : {"tenant", "principal", "permit", "call", "parked", "receipt", "key", "report", "webhook"}) {
    EXPECT_THAT(help.out, HasSubstr(noun));
  }
}

TEST(Program, WrongUsageIsTwoAndSaysThatNothingWasDone) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"no-such-noun"},
                                             {"call"},
                                             {"call", "commit", "x", "--attempt-id", "y", "--outcome", "perhaps"},
                                             {"receipt", "verify", "x"},
                                             {"-o", "xml", "key", "list"},
                                             {"--timeout", "soon", "key", "list"}}) {
    const Ran ran = RunTally(arguments);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("Nothing was done"));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Program, ServerAndCredentialMustBeNamed) {
  EXPECT_THAT(RunTally({"key", "list"}).err, HasSubstr("TALLY_SERVER"));
  const Ran ran = RunTally({"-o", "json", "key", "list"}, {{"TALLY_SERVER", "unix:/nowhere"}});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("TALLY_CREDENTIAL"));
  EXPECT_EQ(Json::parse(ran.out)["code"], "USAGE");
}

TEST(Program, ABadPermitFileIsToldByPlaceBeforeAnythingIsSent) {
  const Folder folder;
  const std::string file = folder.Write("p.toml", "tenant = 'a'\nsubject = 's'\nunit = 'USD/2'\n");
  const Ran ran = RunTally({"permit", "mint", "-f", file});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("budget must be written"));
}

// ---- Authorize ----

class Answering final : public v1::Calls::Service {
 public:
  grpc::Status status;
  v1::AuthorizeResponse response;

  v1::AuthorizeRequest asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  grpc::Status Authorize(grpc::ServerContext*, const v1::AuthorizeRequest* request,
                         v1::AuthorizeResponse* answer) override {
    const std::lock_guard lock(mutex_);
    asked_ = *request;
    *answer = response;
    if (answer->attempt_id().empty()) answer->set_attempt_id(request->attempt_id());
    return status;
  }

  mutable std::mutex mutex_;
  v1::AuthorizeRequest asked_;
};

class AuthorizeProgram : public testing::Test {
 protected:
  void SetUp() override {
    address_ = "unix:" + (folder_.path() / "s").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    credential_ = folder_.Write("credential", "tly_credential\n");
    service_.response.set_disposition(v1::DISPATCH);
    service_.response.set_send_within_ms(60'000);
  }
  void TearDown() override { server_->Shutdown(); }

  Ran Authorize(std::vector<std::string> more = {}, const std::string& input = "") {
    std::vector<std::string> arguments = {"call", "authorize", "--key", "refund-1", "--tool", "t", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTally(arguments,
                    {{"TALLY_SERVER", address_}, {"TALLY_CREDENTIAL", credential_}, {"TALLY_PERMIT_TOKEN", "tok"}},
                    input);
  }
  void Refuse(v1::Disposition disposition, v1::Kind kind, const std::string& code) {
    service_.response.set_disposition(disposition);
    service_.response.mutable_refusal()->set_kind(kind);
    service_.response.mutable_refusal()->set_code(code);
  }

  Folder folder_;
  std::string address_;
  std::string credential_;
  Answering service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(AuthorizeProgram, AGrantIsZeroAndOneDocument) {
  const Ran ran =
      Authorize({"--args", R"({"a":1})", "--attempt-id", "000102030405060708090a0b0c0d0e0f", "--lease", "30s"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["disposition"], "DISPATCH");
  EXPECT_EQ(json["attempt_id"], "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(json["send_within_ms"], 60'000);
  EXPECT_EQ(service_.asked().permit_token(), "tok");
  EXPECT_EQ(service_.asked().arguments(), R"({"a":1})");
  EXPECT_EQ(service_.asked().lease_ms(), 30'000);
}

TEST_F(AuthorizeProgram, RefusalsExitByKind) {
  const struct {
    v1::Disposition disposition;
    v1::Kind kind;
    int exit_code;
  } cases[] = {
      {v1::DENIED, v1::KIND_DENIED, 10},
      {v1::CAP_EXCEEDED, v1::KIND_CAP_EXCEEDED, 12},
      {v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, 13},
      {v1::REPLAY, v1::KIND_ALREADY_DONE, 14},
      {static_cast<v1::Disposition>(99), v1::KIND_DENIED, 13},  // not known: never a grant
      {v1::DISPOSITION_UNSPECIFIED, v1::KIND_UNSPECIFIED, 13},
  };
  for (const auto& c : cases) {
    Refuse(c.disposition, c.kind, "CODE");
    const Ran ran = Authorize();
    EXPECT_EQ(ran.exit_code, c.exit_code);
    EXPECT_FALSE(Json::parse(ran.out)["kind"].is_null());
  }
}

TEST_F(AuthorizeProgram, AGrantThatCannotBeSentInTimeOrIsNotOursIsPending) {
  service_.response.set_send_within_ms(0);
  Ran ran = Authorize();
  EXPECT_EQ(ran.exit_code, 13);
  EXPECT_EQ(Json::parse(ran.out)["code"], "SEND_WINDOW_OVER");
  service_.response.set_send_within_ms(60'000);
  service_.response.set_attempt_id(std::string(16, 'x'));
  ran = Authorize();
  EXPECT_EQ(ran.exit_code, 13);
  EXPECT_EQ(Json::parse(ran.out)["disposition"], "PENDING");
}

TEST_F(AuthorizeProgram, AReplayCarriesTheStoredAnswer) {
  service_.response.set_disposition(v1::REPLAY);
  service_.response.set_outcome(v1::SUCCEEDED);
  service_.response.set_has_result(true);
  service_.response.set_result(R"({"refund":"r_1"})");
  const Ran ran = Authorize();
  EXPECT_EQ(ran.exit_code, 14);
  EXPECT_EQ(Json::parse(ran.out)["result"]["refund"], "r_1");
}

TEST_F(AuthorizeProgram, ErrorsExitByKindAndUnavailablePrintsKeyAndAttempt) {
  service_.status = client::StatusWith(grpc::StatusCode::FAILED_PRECONDITION, "KEY_REUSED");
  EXPECT_EQ(Authorize().exit_code, 1);
  service_.status = client::StatusWith(grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED");
  EXPECT_EQ(Authorize().exit_code, 1);
  service_.status = client::StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 1);
  EXPECT_EQ(Authorize().exit_code, 11);
  service_.status = client::StatusWith(grpc::StatusCode::UNAVAILABLE, "IN_DOUBT", 1);
  const Ran ran = Authorize({"--timeout", "300ms", "--attempt-id", "000102030405060708090a0b0c0d0e0f"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.err, HasSubstr("--key refund-1 --attempt-id 000102030405060708090a0b0c0d0e0f"));
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["kind"], "unavailable");
  EXPECT_EQ(json["code"], "IN_DOUBT");
  EXPECT_EQ(json["retry"], "same_key");
  EXPECT_EQ(json["attempt_id"], "000102030405060708090a0b0c0d0e0f");
}

TEST_F(AuthorizeProgram, SecretsComeByFileOrStdinAndNeverComeBack) {
  Ran ran = Authorize({"--permit-token-file", "-"}, "from-stdin\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(service_.asked().permit_token(), "from-stdin");
  service_.status = client::StatusWith(grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED");
  ran = Authorize({"--permit-token-file", folder_.Write("token", "from-file\n")});
  EXPECT_EQ(service_.asked().permit_token(), "from-file");
  EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("from-file")));
  EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("tly_credential")));
  ran = Authorize({"--permit-token-file", "-", "--args", "@-"}, "x");
  EXPECT_EQ(ran.exit_code, 2);
}

// ---- Verify ----

class VerifyProgram : public testing::Test {
 protected:
  void SetUp() override {
    receipt::Story story;
    story.Mint()
        .Allow("a")
        .Succeed("a")
        .Allow("b", 200)
        .Park("b")
        .Resolve("b", true, v1::OPERATOR)
        .Revoke()
        .Closing()
        .Closed();
    for (const v1::Receipt& receipt : story.receipts()) {
      files_.push_back(folder_.Write(std::to_string(files_.size()) + ".dsse.json", receipt::ToDsseJson(receipt)));
    }
    const keys::PublicKey& key = receipt::samples::Key().public_key();
    keys_ = folder_.Write("keys.json", keys::ToKeysJson({{.name = key.name(), .bytes = key.bytes()}}));
    jws_ = folder_.Write("0.jws", *receipt::ToJws(story.receipts()[0], receipt::samples::Key()) + "\n");
  }

  // No server, no credential: nothing but files.
  Ran Verify(std::vector<std::string> files, const std::string& keys) {
    files.insert(files.begin(), {"-o", "json", "receipt", "verify"});
    files.insert(files.end(), {"--keys", keys});
    return RunTally(files);
  }

  Folder folder_;
  std::vector<std::string> files_;
  std::string keys_;
  std::string jws_;
};

TEST_F(VerifyProgram, AWholeChainIsGood) {
  const Ran ran = Verify(files_, keys_);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["outcome"], "good");
  EXPECT_EQ(json["receipts"].size(), files_.size());
  EXPECT_EQ(json["chains"][0]["complete"], true);
}

TEST_F(VerifyProgram, ThreeLinesAreNeverMerged) {
  const Ran ran = RunTally({"receipt", "verify", files_[0], "--keys", keys_});
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  for (const char* line : {"\n  signature  valid\n", "\n  issuer     trusted\n", "\n  effect     "}) {
    EXPECT_THAT(ran.out, HasSubstr(line));
  }
}

TEST_F(VerifyProgram, AFlippedByteIsBad) {
  std::string text = Slurp(files_[1]);
  // Inside the payload's base64, and still base64.
  const size_t at = text.find("\"payload\"") + 40;
  text[at] = text[at] == 'A' ? 'B' : 'A';
  const Ran ran = Verify({folder_.Write("flipped", text)}, keys_);
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
}

TEST_F(VerifyProgram, AGapOrAnUnknownKeyIsInconclusive) {
  std::vector<std::string> gap = files_;
  gap.erase(gap.begin() + 2);
  EXPECT_EQ(Verify(gap, keys_).exit_code, 3);
  const auto stranger = keys::Ed25519Signer::Create("stranger.example", keys::Secret::Random(keys::kSeedSize));
  const keys::PublicKey& key = (*stranger)->public_key();
  const std::string other = folder_.Write("other.json", keys::ToKeysJson({{.name = key.name(), .bytes = key.bytes()}}));
  EXPECT_EQ(Verify({files_[0]}, other).exit_code, 3);
}

TEST_F(VerifyProgram, WhatCannotBeReadIsTwoAndBadBeatsIt) {
  EXPECT_EQ(Verify({folder_.Write("x", "{}")}, keys_).exit_code, 2);
  EXPECT_EQ(Verify({folder_.path() / "absent"}, keys_).exit_code, 2);
  EXPECT_EQ(Verify({files_[0]}, folder_.path() / "absent").exit_code, 2);
  EXPECT_EQ(Verify({files_[0]}, folder_.Write("k", "no keys")).exit_code, 2);
  EXPECT_EQ(Verify({folder_.Write("y", "a.b.c"), folder_.Write("z", "{}")}, keys_).exit_code, 1);
}

TEST_F(VerifyProgram, AJwsIsVerifiedToo) {
  EXPECT_EQ(Verify({jws_}, keys_).exit_code, 0) << Verify({jws_}, keys_).out;
  std::string text = Slurp(jws_);
  text[text.find('.') + 20] ^= 1;
  EXPECT_EQ(Verify({folder_.Write("bad.jws", text)}, keys_).exit_code, 1);
}

}  // namespace
}  // namespace tally::cli
