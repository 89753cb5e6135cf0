#include "program/message_log.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "realtime/thread.h"

namespace perflab::node {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kBetweenLooks{20};
constexpr std::size_t kBufferBytes = 256u << 10;
constexpr std::size_t kLong = 16u << 10;  // longer data are written directly instead of being buffered
constexpr int kNicest = 19;

}  // namespace

MessageLog::File::File(std::string path) : path_(std::move(path)) { buffer_.reserve(kBufferBytes); }

bool MessageLog::File::append(const void* bytes, std::size_t size) {
  const std::string_view text(static_cast<const char*>(bytes), size);
  if ((size > kLong || !has_room(size)) && !flush()) return false;
  if (size > kLong) {
    if (!write(text)) return false;
  } else {
    buffer_ += text;
  }
  size_ += size;
  return true;
}

bool MessageLog::File::has_room(std::size_t size) const noexcept { return buffer_.size() + size <= kBufferBytes; }

bool MessageLog::File::flush() {
  const bool written = buffer_.empty() || write(buffer_);
  buffer_.clear();
  return written;
}

bool MessageLog::File::write(std::string_view bytes) {
  if (!file_.open()) file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  return file_.open() && write_all(file_, bytes);
}

MessageLog::MessageLog(measure::MessageRing& ring, const measure::Clock& clock, Settings settings)
    : ring_(ring),
      clock_(clock),
      settings_(std::move(settings)),
      deliveries_(settings_.path + ".deliveries"),
      publications_(settings_.path + ".publications"),
      contents_(settings_.path + ".contents"),
      thread_([this] { run(); }) {
  // Until it is registered, the thread would count as one of the middleware.
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return registered_; });
}

MessageLog::~MessageLog() { stop(); }

void MessageLog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  flush();
  ring_.close();
}

void MessageLog::run() {
  realtime::name_this_thread("messages");
  // Independent of the scheduling of the process and of the workload's threads.
  const sched_param none{};
  static_cast<void>(sched_setscheduler(0, SCHED_OTHER, &none));
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNicest));
  realtime::register_this_thread(realtime::Role::kPerflab);
  std::unique_lock lock(mutex_);
  registered_ = true;
  wake_.notify_all();
  while (!stopping_) {
    wake_.wait_for(lock, kBetweenLooks, [this] { return stopping_; });
    lock.unlock();
    write_down();
    lock.lock();
  }
}

void MessageLog::flush() {
  write_down();
  const std::lock_guard lock(writing_);
  for (File* const file : {&contents_, &deliveries_, &publications_}) {
    if (error_.empty() && !file->flush()) fail(*file);
  }
}

void MessageLog::write_down() {
  struct Handler {
    MessageLog& log;
    bool room(std::size_t bytes) {
      if (!log.error_.empty() || log.limit_reached_ns_ != kUnknownTime) return false;
      const std::uint64_t used = log.deliveries_.size() + log.publications_.size() + log.contents_.size();
      if (used + bytes <= log.settings_.limit_bytes) return true;
      log.limit_reached_ns_ = log.clock_.now();
      log.ring_.close();
      return false;
    }
    void operator()(const measure::DeliveryRow& row) {
      if (!room(sizeof row)) return log.ring_.lose(row);
      if (!log.deliveries_.append(&row, sizeof row)) return log.fail(log.deliveries_);
      ++log.delivery_count_;
    }
    void operator()(measure::PublicationRow row, std::span<const std::uint8_t> contents) {
      if (!room(sizeof row + contents.size())) return log.ring_.lose(row);
      row.offset = log.contents_.size();
      if (!log.contents_.append(contents.data(), contents.size())) return log.fail(log.contents_);
      // Contents come before the rows that point to them, so that rows are valid even if the process is killed.
      if (!log.publications_.has_room(sizeof row) && !log.contents_.flush()) return log.fail(log.contents_);
      if (!log.publications_.append(&row, sizeof row)) return log.fail(log.publications_);
      ++log.publication_count_;
    }
  };
  const std::lock_guard lock(writing_);
  ring_.take(Handler{*this});
}

// A file may then end within a row.
void MessageLog::fail(const File& file) {
  error_ = file.path() + ": cannot be written: " + reason_of(errno);
  ring_.close();
}

json MessageLog::counts(Nanoseconds at_ns) const {
  const std::lock_guard lock(writing_);
  const auto lost = [](std::size_t count, const auto& of) {
    json list = json::array();
    for (std::size_t i = 0; i < count; ++i) list.push_back(of(i));
    return list;
  };
  const measure::MessageRing::Ends ends = ring_.ends();
  return {{"type", "message_counts"},
          {"at_ns", at_ns},
          {"deliveries", delivery_count_},
          {"publications", publication_count_},
          {"bytes", deliveries_.size() + publications_.size() + contents_.size()},
          {"lost_deliveries", lost(ends.edges, [this](std::size_t i) { return ring_.lost_deliveries(i); })},
          {"lost_publications", lost(ends.publishers, [this](std::size_t i) { return ring_.lost_publications(i); })},
          {"limit_reached_ns", limit_reached_ns_ == kUnknownTime ? json(nullptr) : json(limit_reached_ns_)},
          {"error", error_.empty() ? json(nullptr) : json(error_)}};
}

}  // namespace perflab::node
