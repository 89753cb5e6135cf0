// A thread that writes the contents of a MessageRing, rows of times and message contents, to two files next
// to the records (docs/formats.md, section 17).
//
// It has the lowest ordinary priority, regardless of the process's scheduling. It wakes every few
// milliseconds, and no thread waits for it. What it does not write in time is lost, and counted by the ring.
#pragma once

#include <condition_variable>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "measure/clock.h"
#include "measure/message_ring.h"

namespace perflab::node {

class MessageLog {
 public:
  struct Settings {
    std::string path;  // path of its files without extension
    std::uint64_t limit_bytes = 0;  // total limit; further messages are lost
  };

  // Creates the thread. Ring and clock outlive it.
  MessageLog(measure::MessageRing& ring, const measure::Clock& clock, Settings settings);
  ~MessageLog();
  MessageLog(const MessageLog&) = delete;
  MessageLog& operator=(const MessageLog&) = delete;

  // Writes what the ring holds now.
  void flush();
  // Ends the thread once everything in the ring is written. Idempotent.
  void stop();
  // The record `message_counts` (docs/formats.md, section 4).
  [[nodiscard]] nlohmann::json counts(Nanoseconds at_ns) const;

 private:
  // The file of rows or of contents, created with the first write.
  class File {
   public:
    explicit File(std::string path);
    // False if it cannot be written; errno says why.
    bool append(const void* bytes, std::size_t size);
    bool flush();
    // Whether that many bytes can be appended. Writes nothing.
    [[nodiscard]] bool has_room(std::size_t size) const noexcept;
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

   private:
    bool write(std::string_view bytes);

    std::string path_;
    Descriptor file_;
    std::string buffer_;
    std::uint64_t size_ = 0;
  };

  void run();
  void write_down();
  void fail(const File& file);

  measure::MessageRing& ring_;
  const measure::Clock& clock_;
  const Settings settings_;
  File deliveries_, publications_, contents_;
  mutable std::mutex writing_;  // guards everything below; held by the writing thread
  std::uint64_t delivery_count_ = 0, publication_count_ = 0;
  Nanoseconds limit_reached_ns_ = kUnknownTime;
  std::string error_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool registered_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perflab::node
