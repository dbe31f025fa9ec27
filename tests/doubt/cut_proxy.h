#ifndef TALLY_TESTS_DOUBT_CUT_PROXY_H_
#define TALLY_TESTS_DOUBT_CUT_PROXY_H_

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tally::test {

// Stands between a client and PostgreSQL (frontend/backend protocol 3.0) and loses the reply to COMMIT on demand.
class CutProxy {
 public:
  enum class Cut {
    kNothing,
    kBeforeCommit,     // COMMIT never reaches the server
    kAfterCommit,      // the server has answered COMMIT; the answer is lost
    kWhileCommitting,  // COMMIT is on its way; the client hears nothing more, the server goes on
  };

  // `socket_dir`: where the server's socket .s.PGSQL.5432 lies.
  explicit CutProxy(std::filesystem::path socket_dir);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;

  // The folder in which the proxy's own socket lies.
  const std::filesystem::path& socket_dir() const { return folder_; }

  // The next COMMIT of any connection is cut so, once.
  void CutNext(Cut cut) { cut_ = cut; }
  // New connections are closed at once from the moment of the next cut on.
  void RefuseAfterCut(bool refuse) { refuse_after_cut_ = refuse; }
  void Accept() { refusing_ = false; }
  int cuts() const { return cuts_; }

 private:
  void Serve();
  void Carry(int client);

  const std::filesystem::path server_dir_;
  std::filesystem::path folder_;
  int listener_ = -1;
  std::atomic<Cut> cut_ = Cut::kNothing;
  std::atomic<bool> refuse_after_cut_ = false;
  std::atomic<bool> refusing_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> cuts_ = 0;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace tally::test

#endif  // TALLY_TESTS_DOUBT_CUT_PROXY_H_
