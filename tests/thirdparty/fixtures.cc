// Writes receipts and keys as `tally receipt export` does, for programs that are not ours to verify.
// usage: thirdparty_fixtures FOLDER   (made, or emptied of an earlier run's files by overwriting)
#include <filesystem>
#include <fstream>
#include <iostream>

#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/key_file.h"
#include "lib/keys/published.h"
#include "lib/receipt/dsse.h"
#include "lib/receipt/jws.h"
#include "tests/receipt/story.h"

namespace tally {
namespace {

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void WriteAll(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  // Terms that make a payload longer than any buffer of a line-reading tool.
  receipt::Story story;
  story.Mint([](v1::ReceiptPayload& p) {
    p.mutable_permit_terms()->mutable_grants(0)->set_arguments_schema("{\"description\":\"" + std::string(200000, 'x') +
                                                                      "\"}");
  });
  // Evidence, and the salt that stands beside it when it is handed out.
  const std::string evidence("what the bank showed\0\n", 22);
  const std::string salt(keys::kSaltSize, '\x9a');
  story.Allow("a").Succeed("a").Allow("b").Park("b").Resolve("b", true, v1::RECONCILER, -1, [&](v1::ReceiptPayload& p) {
    p.set_evidence_commitment(keys::Commit(keys::Domain::kEvidence, salt, evidence).str());
  });
  const std::string resolved = keys::HexEncode(story.receipts().back().receipt_id());
  Write(folder / "resolved", resolved + "\n");
  Write(folder / (resolved + ".evidence"), evidence);
  Write(folder / (resolved + ".evidence.json"), "{\n  \"salt\": \"" + keys::HexEncode(salt) +
                                                    "\",\n  \"salt_base64\": \"" + keys::Base64Encode(salt) +
                                                    "\"\n}\n");

  std::string ids;
  for (const v1::Receipt& each : story.receipts()) {
    const std::string id = keys::HexEncode(each.receipt_id());
    ids += id + "\n";
    Write(folder / (id + ".dsse.json"), receipt::ToDsseJson(each));
    const auto jws = receipt::ToJws(each, receipt::samples::Key());
    if (!jws.ok()) throw std::runtime_error(std::string(jws.status().message()));
    Write(folder / (id + ".jws"), *jws + "\n");
  }
  Write(folder / "ids", ids);
  // Two keys, and the one that signed is not the first.
  const std::vector<keys::PublicKey> both = {receipt::samples::OtherKey().public_key(),
                                             receipt::samples::Key().public_key()};
  std::vector<keys::KnownKey> known;
  std::string pem;
  for (const keys::PublicKey& key : both) {
    known.push_back({.name = key.name(), .bytes = key.bytes()});
    pem += keys::ToPem(key);
  }
  Write(folder / "keys.pem", pem);
  Write(folder / "keys.json", keys::ToKeysJson(known));
  Write(folder / "keys.jwks", keys::ToJwks(both));
}

}  // namespace
}  // namespace tally

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: thirdparty_fixtures FOLDER\n";
    return 2;
  }
  try {
    tally::WriteAll(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
