// Discovery and matching: one bus per domain, for all participants of this process.
//
// Endpoints are created and destroyed by one thread at a time, which connects and disconnects them and
// notifies both sides. Writing and taking never use the bus.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "middleware/direct/packet.h"
#include "middleware/middleware.h"
#include "middleware/support/options.h"

namespace perflab::middleware::direct {

class Reader;
class Writer;

class Bus {
 public:
  // Created for the first participant of the domain, destroyed with the last.
  static std::shared_ptr<Bus> of(std::uint32_t domain);

  void enter(Writer& writer);
  void enter(Reader& reader);
  void leave(Writer& writer);
  // Afterwards no writer knows the reader or is about to call it.
  void leave(Reader& reader);

  // PERFLAB_DURATION_INFINITE also if the writer does not exist.
  [[nodiscard]] std::int64_t lifespan_of(const perflab_identity& writer);

  // Memory for a writer's messages. It outlives the writer, because readers may still hold some, and is
  // reused by the next writer.
  Pool& lend_pool();
  void return_pool(Pool& pool) noexcept;

 private:
  // What to report to a writer and a reader; `policy` is set if they do not match.
  struct Pair {
    Writer* writer;
    Reader* reader;
    const char* policy;
  };
  static bool concern(const Writer& writer, const Reader& reader);
  static Pair join(Writer& writer, Reader& reader);
  static void tell(const Pair& pair);

  std::mutex mutex_;
  std::vector<Writer*> writers_;
  std::vector<Reader*> readers_;
  std::vector<std::unique_ptr<Pool>> pools_;
  std::vector<Pool*> free_pools_;
};

class Participant {
 public:
  Participant(const perflab_host& host, const support::LocalSettings& settings);

  const char* describe();
  [[nodiscard]] Bus& bus() const noexcept { return *bus_; }
  [[nodiscard]] const support::LocalSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::int64_t host_now_ns() const noexcept { return host_.now_ns(host_.context); }
  perflab_identity next_identity();

 private:
  const perflab_host host_;
  const support::LocalSettings settings_;
  const std::shared_ptr<Bus> bus_;
  perflab_identity identity_;
  std::uint32_t entities_ = 0;
  std::string description_;
};

}  // namespace perflab::middleware::direct
