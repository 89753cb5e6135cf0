// The smallest middleware in C++: one queue per reader, within one process. docs/new-middleware.md explains
// it.
//
// There is no thread: a writer puts a copy of the message into the queue of each matching reader.
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "middleware/middleware.h"
#include "middleware/support/local_domain.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/waitset.h"
#include "middleware/types.h"

namespace perflab::middleware::smallest {

// ---- step 2: the path of a message ----

struct Participant {
  Participant(const perflab_host& lent, const support::LocalSettings& given) : host(lent), settings(given) {}
  const char* describe() const { return R"({"transport": "queues"})"; }

  const perflab_host host;
  const support::LocalSettings settings;
};

// A writer or reader, in the global list of the process.
class Endpoint {
 public:
  Endpoint(Participant& of, bool writes, const perflab_endpoint_settings& settings, const perflab_listener* called)
      : participant_(of),
        writes_(writes),
        info_(support::checked_endpoint("smallest_cpp", settings)),  // throws if they are wrong
        listener_(called != nullptr ? *called : perflab_listener{}) {
    const std::uint32_t number = ++made;
    std::memcpy(id_.bytes, &number, sizeof number);
  }

  const perflab_identity& identity() const { return id_; }
  std::size_t matched() const {
    const std::lock_guard lock(everything);
    std::size_t count = 0;
    each([&](Endpoint&) { ++count; });
    return count;
  }

 protected:
  // ---- step 3: matching ----
  bool belongs_to(const Endpoint& other) const {
    return writes_ != other.writes_ && participant_.settings.domain == other.participant_.settings.domain &&
           !participant_.settings.ignore_local_endpoints && info_.topic == other.info_.topic &&
           info_.type == other.info_.type;
  }
  template <typename Visit>
  void each(Visit visit) const {
    for (Endpoint* const other : all)
      if (belongs_to(*other)) visit(*other);
  }
  void tell(perflab_event_kind kind, const Endpoint& other) const {
    if (listener_.on_event == nullptr) return;
    perflab_event event{};
    event.kind = kind;
    event.at_ns = participant_.host.now_ns(participant_.host.context);
    event.peer = other.id_;
    event.topic = info_.topic.c_str();
    event.type = info_.type.c_str();
    event.count = 1;
    listener_.on_event(listener_.context, &event);
  }
  void enter() {
    const std::lock_guard lock(everything);
    each([&](Endpoint& other) {
      tell(PERFLAB_MATCHED, other);
      other.tell(PERFLAB_MATCHED, *this);
    });
    all.push_back(this);
  }
  void leave() {
    const std::lock_guard lock(everything);
    std::erase(all, this);
    each([&](Endpoint& other) { other.tell(PERFLAB_UNMATCHED, *this); });
  }

  static inline std::mutex everything;
  static inline std::vector<Endpoint*> all;
  static inline std::atomic<std::uint32_t> made{0};

  Participant& participant_;
  const bool writes_;
  const support::Endpoint info_;
  const perflab_listener listener_;
  perflab_identity id_{};
};

struct Message {
  perflab_identity writer;
  std::vector<std::uint8_t> bytes;
};

// The wait-set of support/waitset.h calls has_data(), and gets ready() calls.
class Reader : public Endpoint, public support::Attachment {
 public:
  Reader(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
      : Endpoint(of, false, settings, called), Attachment("smallest_cpp") {
    enter();
  }
  ~Reader() { leave(); }

  void receive(std::unique_ptr<Message> message) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(message));
    const auto depth = static_cast<std::size_t>(info_.qos.depth);
    if (info_.qos.history == PERFLAB_KEEP_LAST && queue_.size() > depth) queue_.pop_front();  // drop the oldest
    size_.store(queue_.size());
    ready();
  }
  bool has_data() const noexcept { return size_.load() > 0; }

  perflab_status take(perflab_sample* sample, perflab_error*) {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return PERFLAB_NO_DATA;
    Message* const message = queue_.front().release();
    queue_.pop_front();
    size_.store(queue_.size());
    *sample = {};
    sample->data = message->bytes.data();
    sample->size = message->bytes.size();
    sample->writer = message->writer;
    sample->source_timestamp_ns = sample->reception_ns = PERFLAB_TIME_UNKNOWN;
    sample->loan = message;
    return PERFLAB_OK;
  }
  void return_sample(perflab_sample* sample) noexcept { delete static_cast<Message*>(sample->loan); }
  std::int64_t lifespan(const perflab_identity&) const noexcept { return PERFLAB_DURATION_INFINITE; }

 private:
  std::deque<std::unique_ptr<Message>> queue_;
  std::atomic<std::size_t> size_{0};
};

class Writer : public Endpoint {
 public:
  Writer(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
      : Endpoint(of, true, settings, called) {
    enter();
  }
  ~Writer() { leave(); }

  perflab_status write(const perflab_bytes* parts, std::size_t count, perflab_error*) {
    const std::lock_guard lock(everything);
    each([&](Endpoint& reader) {
      auto message = std::make_unique<Message>(Message{id_, std::vector<std::uint8_t>(size_of(parts, count))});
      put_together(parts, count, message->bytes.data());
      static_cast<Reader&>(reader).receive(std::move(message));
    });
    return PERFLAB_OK;
  }
  void stamp_next(std::int64_t) noexcept {}  // never called without source time stamps
};

using WaitSet = support::WaitSet<Reader>;

}  // namespace perflab::middleware::smallest

// ---- step 1: what it is ----

namespace smallest = perflab::middleware::smallest;
PERFLAB_MIDDLEWARE_CLASSES(smallest::Participant, smallest::Writer, smallest::Reader, smallest::WaitSet)

namespace {

using namespace perflab::middleware::support;

// Declare what is true; the conformance suite checks it.
perflab_capabilities capabilities() { return {}; }

// The host refuses undeclared policies. The suite tests the declared ones.
const perflab_policy* policies() {
  static constexpr perflab_policy kPolicies[] = {supported("history"), kLastPolicy};
  return kPolicies;
}

// Checks the arguments of open() before anything starts; an exception becomes a status and a line of text.
LocalSettings settings(const perflab_participant_settings& given) {
  const Options options("smallest_cpp", {given.options, given.option_count}, {});
  return local_settings("smallest_cpp", given, options, "leaves no process");
}

constexpr perflab_middleware kMiddleware =
    plugin_table<settings>({.name = "smallest_cpp",
                            .summary = "queues within one process: an example",
                            .version = [] { return "1"; },
                            .capabilities = capabilities,
                            .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
