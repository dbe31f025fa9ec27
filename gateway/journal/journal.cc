#include "gateway/journal/journal.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <utility>

#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;
using keys::Cat;

constexpr std::chrono::milliseconds kIdle{60'000};

// Once nothing is known any more but what the journal says. See the head of journal.h.
Leftover AfterRestart(Record record, bool damaged) {
  Leftover leftover{std::move(record.commit)};
  if (record.stage == Stage::kOutcome) return leftover;
  const bool certain = record.stage == Stage::kGranted && !damaged;
  leftover.commit.set_outcome(certain ? v1::OUTCOME_NOT_SENT : v1::OUTCOME_UNCERTAIN);
  if (certain) leftover.wait = std::chrono::milliseconds(std::max<int64_t>(record.send_within_ms, 0));
  return leftover;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(JournalOptions options, asio::any_io_executor loop) {
  JournalFile::Found found;
  auto file = JournalFile::Open(options.path, {options.bytes_max, options.compact_bytes_min}, &found);
  if (!file.ok()) return file.status();
  return std::unique_ptr<Journal>(new Journal(std::move(options), std::move(loop), *std::move(file), std::move(found)));
}

Journal::Journal(JournalOptions options, asio::any_io_executor loop, std::unique_ptr<JournalFile> file,
                 JournalFile::Found found)
    : options_(std::move(options)), loop_(std::move(loop)), file_(std::move(file)) {
  if (found.torn > 0) notice_ = Cat(found.torn, " bytes that a crash cut short were taken off the journal");
  if (found.damaged > 0) {
    notice_ = Cat("the journal was damaged: ", found.damaged, " bytes were no records. A copy is kept at ",
                  found.damaged_copy, "; calls that were granted are reported as uncertain");
  }
  for (Record& record : found.open) leftovers_.push_back(AfterRestart(std::move(record), found.damaged > 0));
  thread_ = std::thread([this] { WriteAll(); });
}

Journal::~Journal() {
  queue_.Close();
  thread_.join();
}

std::vector<Leftover> Journal::TakeLeftovers() { return std::exchange(leftovers_, {}); }

void Journal::Granted(const std::string& call_id, const std::string& attempt_id, int64_t send_within_ms) {
  Record record{Stage::kGranted, send_within_ms, {}};
  record.commit.set_call_id(call_id);
  record.commit.set_attempt_id(attempt_id);
  Add(std::move(record), nullptr);
}

asio::awaitable<absl::Status> Journal::Sending(std::string call_id, std::string attempt_id, int64_t sent_at_us) {
  Record record{Stage::kSending, 0, {}};
  record.commit.set_call_id(std::move(call_id));
  record.commit.set_attempt_id(std::move(attempt_id));
  record.commit.set_sent_at_us(sent_at_us);
  return AddAndWait(std::move(record));
}

asio::awaitable<absl::Status> Journal::Outcome(v1::CommitRequest commit) {
  return AddAndWait(Record{Stage::kOutcome, 0, std::move(commit)});
}

void Journal::Delivered(const std::string& attempt_id) {
  Record record{Stage::kDelivered, 0, {}};
  record.commit.set_attempt_id(attempt_id);
  Add(std::move(record), nullptr);
}

void Journal::Add(Record record, Done done) {
  // Only what has not been sent can be turned away. The rest is bounded by the calls that are under way.
  const bool bounded = record.stage == Stage::kSending;
  Item item{std::move(record), std::move(done)};
  if (queue_.Push(item, bounded ? options_.queue_max : std::numeric_limits<size_t>::max())) return;
  if (item.done) item.done(absl::ResourceExhaustedError("too many calls wait for the journal's disk"));
}

asio::awaitable<absl::Status> Journal::AddAndWait(Record record) {
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(absl::Status)>(
      [this, &record](auto handler) {
        // The guard keeps the loop running as long as somebody waits for the disk.
        Add(std::move(record),
            [handler = std::move(handler), loop = asio::make_work_guard(loop_)](absl::Status status) mutable {
              asio::post(loop.get_executor(), [handler = std::move(handler), status = std::move(status)]() mutable {
                std::move(handler)(std::move(status));
              });
            });
      },
      asio::use_awaitable);
}

void Journal::WriteAll() {
  while (!queue_.Ended()) {
    if (std::vector<Item> items = queue_.Take(kIdle); !items.empty()) Write(std::move(items));
  }
}

void Journal::Write(std::vector<Item> items) {
  std::vector<Record> records;
  Durability durability = Durability::kWritten;
  for (Item& item : items) {
    if (item.done) durability = Durability::kSynced;
    records.push_back(std::move(item.record));
  }
  absl::Status status = file_->Append(records, durability);
  if (!status.ok() && items.size() > 1) {
    // What one of them is refused for, its size or the file's, is not the others' fault.
    for (size_t i = 0; i < items.size(); ++i) {
      const absl::Status one =
          file_->Append({std::move(records[i])}, items[i].done ? Durability::kSynced : Durability::kWritten);
      healthy_ = !absl::IsUnavailable(one);
      if (items[i].done) items[i].done(one);
    }
    return;
  }
  healthy_ = !absl::IsUnavailable(status);
  for (Item& item : items) {
    if (item.done) item.done(status);
  }
}

}  // namespace tally::gateway
