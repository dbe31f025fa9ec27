// tally parked, call correct, call evidence and receipt verify --evidence against a real tallyd: what is printed can be
// pasted, and does what it says.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/json_form.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "tests/cli/run_tally.h"
#include "tests/support/tallyd/tallyd.h"

namespace tally::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ParkedProgram : public testing::Test {
 protected:
  ParkedProgram() : fleet_(test::Postgres::Shared(), 1) {
    calls_ = v1::Calls::NewStub(fleet_.replica(0).Channel());
    parked_ = v1::ParkedCalls::NewStub(fleet_.replica(0).Channel());
    v1::MintRequest terms;
    terms.set_subject("agent");
    terms.set_unit("USD/2");
    terms.mutable_budget()->set_unlimited(true);
    terms.set_expires_in_ms(3'600'000);
    v1::GrantTerms& grant = *terms.add_grants();
    grant.set_tool("pay");
    grant.mutable_cap()->set_unlimited(true);
    grant.mutable_budget()->set_unlimited(true);
    grant.mutable_cost()->set_pointer("/amount");
    permit_ = fleet_.Mint(terms);
    for (const auto& [role, name] : {std::pair{v1::OPERATOR, "operator"}, std::pair{v1::AUDITOR, "auditor"}}) {
      credentials_[role] = folder_.Write(name, fleet_.credential(role) + "\n");
    }
    proof_ = folder_.Write("proof", "charge ch_7: succeeded\n");
  }

  Ran As(v1::Role role, std::vector<std::string> arguments) {
    return RunTally(
        arguments,
        {{"TALLY_SERVER", fleet_.replica(0).socket()}, {"TALLY_CREDENTIAL", credentials_.at(role)}, {"TZ", "UTC"}});
  }
  Json JsonAs(v1::Role role, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-o", "json"});
    const Ran ran = As(role, arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }

  struct Case {
    std::string call_id, attempt_id, uncertain;
  };
  Case Park(const std::string& key, int64_t amount = 1234) {
    v1::AuthorizeRequest ask;
    ask.set_permit_token(permit_.permit_token());
    ask.set_key(key);
    ask.set_attempt_id(test::RandomAttemptId());
    ask.set_tool("pay");
    ask.set_arguments("{\"amount\":" + std::to_string(amount) + ",\"to\":\"" + key + "\"}");
    v1::AuthorizeResponse granted;
    grpc::ClientContext context;
    test::Prepare(context, fleet_.credential(v1::GATEWAY));
    EXPECT_TRUE(calls_->Authorize(&context, ask, &granted).ok());
    return {granted.call_id(), granted.attempt_id(),
            Commit(granted.call_id(), granted.attempt_id(), v1::OUTCOME_UNCERTAIN)};
  }
  std::string Commit(const std::string& call_id, const std::string& attempt_id, v1::CommitOutcome outcome) {
    v1::CommitRequest commit;
    commit.set_call_id(call_id);
    commit.set_attempt_id(attempt_id);
    commit.set_outcome(outcome);
    v1::CommitResponse response;
    grpc::ClientContext context;
    test::Prepare(context, fleet_.credential(v1::GATEWAY));
    const grpc::Status status = calls_->Commit(&context, commit, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.receipts_size() > 0 ? response.receipts(0).receipt_id() : "";
  }
  void LookUp(const Case& parked, v1::Finding finding, const std::string& detail, const std::string& body) {
    if (claim_id_.empty()) {
      v1::ClaimRequest claim;
      claim.set_call_id(parked.call_id);
      claim.set_claim_ms(600'000);
      v1::ClaimResponse claimed;
      grpc::ClientContext context;
      test::Prepare(context, fleet_.credential(v1::RECONCILER));
      EXPECT_TRUE(parked_->Claim(&context, claim, &claimed).ok());
      claim_id_ = claimed.claim_id();
    }
    v1::NoteLookUpRequest note;
    note.set_call_id(parked.call_id);
    note.set_attempt_id(parked.attempt_id);
    note.set_supersedes(parked.uncertain);
    note.set_claim_id(claim_id_);
    note.mutable_look_up()->set_kind("http");
    note.mutable_look_up()->set_provider("bank");
    note.mutable_look_up()->set_finding(finding);
    note.mutable_look_up()->set_detail(detail);
    note.mutable_look_up()->set_body(body);
    v1::NoteLookUpResponse noted;
    grpc::ClientContext context;
    test::Prepare(context, fleet_.credential(v1::RECONCILER));
    EXPECT_TRUE(parked_->NoteLookUp(&context, note, &noted).ok());
  }

  // The command that stands in `text` and holds `part`, as one would paste it, with the blanks filled in.
  std::vector<std::string> Pasted(const std::string& text, const std::string& part) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(part) == std::string::npos || line.find("  tally ") != 0) continue;
      std::istringstream words(line);
      std::vector<std::string> arguments;
      for (std::string word; words >> word;) {
        if (word == "WHO") word = "bank";
        if (word == "WHERE") word = "ch_7";
        if (word == "@FILE") word = "@" + proof_;
        if (word == "'WHY'") word = "seen";
        arguments.push_back(word);
      }
      arguments.erase(arguments.begin());
      return arguments;
    }
    ADD_FAILURE() << "no command with '" << part << "' in:\n" << text;
    return {};
  }

  Folder folder_;
  test::Fleet fleet_;
  std::unique_ptr<v1::Calls::Stub> calls_;
  std::unique_ptr<v1::ParkedCalls::Stub> parked_;
  v1::MintResponse permit_;
  std::map<v1::Role, std::string> credentials_;
  std::string proof_, claim_id_;
};

TEST_F(ParkedProgram, AListTellsWhatIsHeldWhoHasItAndWhatWasTried) {
  const Case looked = Park("looked");
  LookUp(looked, v1::FINDING_ABSENT, "", "[]");
  LookUp(looked, v1::FINDING_UNCLEAR, "", "");
  Park("untouched", 5);
  const std::string text = As(v1::OPERATOR, {"parked", "list"}).out;
  for (const char* column : {"RECEIPT", "AMOUNT", "AGE", "CLAIMED BY", "LOOK-UPS", "WAITS FOR"}) {
    EXPECT_THAT(text, HasSubstr(column));
  }
  EXPECT_THAT(text, HasSubstr("12.34 USD held"));
  EXPECT_THAT(text, HasSubstr("2, last UNCLEAR"));
  EXPECT_THAT(text, HasSubstr("its look-up, under way"));
  EXPECT_THAT(text, HasSubstr("none"));
  const Json json = JsonAs(v1::OPERATOR, {"parked", "list"});
  EXPECT_EQ(json["parked"].size(), 2u);
  EXPECT_EQ(json["parked"][0]["look_ups"].size(), 2u);
  EXPECT_THAT(text, HasSubstr(json["parked"][0]["claimed_by"].get<std::string>()));
}

TEST_F(ParkedProgram, OneIsShownWithEveryRawAnswerMadeHarmless) {
  const Case parked = Park("k");
  LookUp(parked, v1::FINDING_ABSENT, "no such charge", "{\"data\":[]}");
  LookUp(parked, v1::FINDING_UNCLEAR, "not JSON", "\x1b[2Jgone");
  Commit(parked.call_id, parked.attempt_id, v1::OUTCOME_NOT_SENT);
  const std::string text = As(v1::OPERATOR, {"parked", "show", parked.call_id}).out;
  for (const char* told : {"look-ups tried (2):", "http  bank  ABSENT  no such charge\n{\"data\":[]}\n",
                           "not JSON\n\\x1b[2Jgone", "its gateway said NOT_SENT after its lease had ended", "between ",
                           ", if at all", "12.34 USD", "\"to\":\"k\""}) {
    EXPECT_THAT(text, HasSubstr(told));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(ParkedProgram, TheCommandsThatAreShownCloseIt) {
  const Case parked = Park("k");
  const std::string receipt = keys::HexEncode(parked.uncertain);
  const std::string text = As(v1::OPERATOR, {"parked", "show", receipt}).out;
  for (const char* verdict : {"happened", "not-happened", "cannot-tell"}) {
    EXPECT_THAT(text, HasSubstr("tally parked resolve " + receipt + " --verdict " + verdict + " "));
  }
  const auto command = Pasted(text, "--verdict happened");
  const Ran resolved = As(v1::OPERATOR, command);
  EXPECT_EQ(resolved.exit_code, 0) << resolved.err;
  EXPECT_THAT(resolved.out, HasSubstr("it was carried out"));
  EXPECT_EQ(As(v1::OPERATOR, command).exit_code, 0) << "said twice it is the same";
  EXPECT_EQ(As(v1::OPERATOR, {"parked", "list"}).out, "No call is parked.\n");
}

TEST_F(ParkedProgram, AStaleVerdictIsExplained) {
  const Case first = Park("k");
  const std::string text = As(v1::OPERATOR, {"parked", "show", first.call_id}).out;
  ASSERT_EQ(As(v1::OPERATOR, Pasted(text, "--verdict not-happened")).exit_code, 0);
  Ran stale = As(v1::OPERATOR, Pasted(text, "--verdict happened"));
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, HasSubstr("STALE_RESOLUTION"));
  EXPECT_THAT(stale.err, HasSubstr("Attempt 1, which that receipt is about, is NOT_HAPPENED now since "));
  Park("k");
  stale = As(v1::OPERATOR, Pasted(text, "--verdict happened"));
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, HasSubstr("Attempt 2 of the same call is UNCERTAIN; what is known of one attempt does not"));
  EXPECT_THAT(stale.err, HasSubstr("tally parked show " + first.call_id));
}

TEST_F(ParkedProgram, AContradictedCallIsListedAndTheCommandThatPutsItRightIsShown) {
  const Case parked = Park("k");
  const std::string receipt = keys::HexEncode(parked.uncertain);
  std::string text = As(v1::OPERATOR, {"parked", "show", receipt}).out;
  ASSERT_EQ(As(v1::OPERATOR, Pasted(text, "--verdict not-happened")).exit_code, 0);
  Commit(parked.call_id, parked.attempt_id, v1::OUTCOME_SUCCEEDED);
  text = As(v1::OPERATOR, {"parked", "list"}).out;
  EXPECT_THAT(text, HasSubstr("12.34 USD charged"));
  EXPECT_THAT(text, HasSubstr("a person: contradicted"));
  EXPECT_THAT(text, HasSubstr("tally parked show CALL"));
  text = As(v1::OPERATOR, {"parked", "show", parked.call_id}).out;
  EXPECT_THAT(text, HasSubstr("then turned out to have happened"));
  EXPECT_THAT(text, HasSubstr("If attempt 1 was not carried out:\n  tally call correct " + parked.call_id));
  const auto command = Pasted(text, "tally call correct");
  const Ran corrected = As(v1::OPERATOR, command);
  EXPECT_EQ(corrected.exit_code, 0) << corrected.err;
  EXPECT_THAT(corrected.out, HasSubstr("NOT_HAPPENED"));
  EXPECT_EQ(As(v1::OPERATOR, {"parked", "list"}).out, "No call is parked.\n");
  // The same receipt named again, for the other verdict: it is not the present end any more.
  std::vector<std::string> other = command;
  for (std::string& word : other) word = word == "not-happened" ? "happened" : word;
  const Ran stale = As(v1::OPERATOR, other);
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, HasSubstr("is NOT_HAPPENED now since "));
}

TEST_F(ParkedProgram, KeptEvidenceIsProvedAgainstItsReceipt) {
  const Case parked = Park("k");
  const std::string text = As(v1::OPERATOR, {"parked", "show", parked.call_id}).out;
  ASSERT_EQ(As(v1::OPERATOR, Pasted(text, "--verdict happened")).exit_code, 0);
  const std::string out = (folder_.path() / "out").string();
  const Json written = JsonAs(v1::OPERATOR, {"call", "evidence", parked.call_id, "--out", out});
  ASSERT_EQ(written["files"].size(), 2u);
  const std::string kept = written["files"][0];
  EXPECT_EQ(Slurp(kept), Slurp(proof_));
  const Json about = Json::parse(Slurp(kept + ".json"));
  EXPECT_EQ(about["source"], "bank");
  const std::string receipt_id = about["receipt_id"];
  const std::string salt = about["salt"];
  ASSERT_EQ(
      As(v1::AUDITOR, {"receipt", "export", receipt_id, keys::HexEncode(parked.uncertain), "--out", out}).exit_code, 0);
  const std::string receipt = out + "/" + receipt_id + ".dsse.json";
  const auto verify = [&](const std::string& file, const std::string& evidence, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"receipt",          "verify",     file,    "--keys",
                                          out + "/keys.json", "--evidence", evidence};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTally(arguments);  // no server, no credential
  };
  Ran ran = verify(receipt, kept);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("is the evidence that CALL_RESOLVED_HAPPENED " + receipt_id + " commits to"));
  // The salt by itself, with any copy of the file.
  EXPECT_EQ(verify(receipt, proof_, {"--salt", salt}).exit_code, 0);

  const std::string forged = folder_.Write("forged", "charge ch_7: failed\n");
  ran = verify(receipt, forged, {"--salt", salt});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr(forged + " is not what the receipt commits to"));
  EXPECT_EQ(verify(receipt, kept, {"--salt", std::string(64, '0')}).exit_code, 1);
  ran = verify(receipt, proof_);
  EXPECT_EQ(ran.exit_code, 2) << "no salt";
  EXPECT_THAT(ran.err, HasSubstr("--salt HEX"));
  EXPECT_EQ(verify(receipt, kept, {"--salt", "12"}).exit_code, 2);
  // The CALL_UNCERTAIN receipt commits to nothing.
  ran = verify(out + "/" + keys::HexEncode(parked.uncertain) + ".dsse.json", kept);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("none of these receipts commits to evidence"));
  // A receipt that is not good itself proves nothing.
  std::string spoilt = Slurp(receipt);
  const size_t at = spoilt.find("\"sig\"") + 12;
  spoilt[at] = spoilt[at] == 'A' ? 'B' : 'A';
  EXPECT_EQ(verify(folder_.Write("spoilt.dsse.json", spoilt), kept).exit_code, 1);
}

}  // namespace
}  // namespace tally::cli
