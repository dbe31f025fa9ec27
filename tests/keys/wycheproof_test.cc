// Wycheproof's Ed25519 cases. The rule is libsodium's; where it departs from the file's verdict, the case is listed
// here with the reason, so that a change of library shows.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/keys/encoding.h"
#include "lib/keys/public_key.h"

namespace tally::keys {
namespace {

std::string VectorsPath() {
  const char* folder = std::getenv("TALLY_VECTORS");
  return std::string(folder != nullptr ? folder : "../shared/vectors") + "/ed25519/wycheproof_ed25519.json";
}

// Case numbers (tcId) that libsodium judges otherwise than the file.
const std::set<int> kDeviations = {};

TEST(Wycheproof, LibsodiumsVerdictIsTheFilesExceptWhereListed) {
  std::ifstream file(VectorsPath());
  if (!file) GTEST_SKIP() << "no vectors at " << VectorsPath();
  const nlohmann::json document = nlohmann::json::parse(file);
  std::set<int> deviations;
  int cases = 0;
  for (const auto& group : document["testGroups"]) {
    const std::string key = *HexDecode(group["publicKey"]["pk"].get<std::string>());
    for (const auto& test : group["tests"]) {
      ++cases;
      const bool accepted =
          VerifySignature(key, *HexDecode(test["msg"].get<std::string>()), *HexDecode(test["sig"].get<std::string>()));
      if (accepted != (test["result"] == "valid")) deviations.insert(test["tcId"].get<int>());
    }
  }
  EXPECT_EQ(cases, document["numberOfTests"].get<int>());
  EXPECT_EQ(deviations, kDeviations);
}

}  // namespace
}  // namespace tally::keys
