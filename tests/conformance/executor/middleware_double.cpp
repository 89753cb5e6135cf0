// A plug-in within one process, for the tests of the runtime: messages reach every reader of their topic
// before write() returns, samples are related and messages lent. On "rt/exhausted" there is no loan. On
// "rt/late" the last message comes again, ten times, each time right after take() found nothing and before it
// says so.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "middleware/middleware.h"

struct perflab_waitset {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  std::vector<std::pair<perflab_reader*, std::uint64_t>> attached;
};

struct Stored {
  std::vector<std::uint8_t> bytes;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  std::int64_t arrived_ns = 0;
};

struct perflab_participant {
  perflab_host host{};
  bool ignore_local = false;
  std::recursive_mutex mutex;  // a callback may write
  std::vector<perflab_writer*> writers;
  std::vector<perflab_reader*> readers;
  std::uint8_t entities = 0;
};

struct perflab_reader {
  perflab_participant* participant = nullptr;
  std::string topic;
  perflab_qos qos{};
  bool related_samples = false;
  perflab_listener listener{};
  perflab_identity identity{};
  perflab_waitset* waitset = nullptr;
  std::mutex mutex;
  std::deque<std::unique_ptr<Stored>> history;
  bool telling = false;  // of data; under the participant's mutex
  std::vector<std::uint8_t> last;
  int late = 0;
};

struct perflab_writer {
  perflab_participant* participant = nullptr;
  std::string topic;
  std::size_t fixed_size = 0;
  perflab_identity identity{};
  std::int64_t sequence = 0;
  int lent = 0;
};

namespace {

perflab_status fail(perflab_error* error, perflab_status status, const std::string& text) {
  std::snprintf(error->text, sizeof error->text, "%s", text.c_str());
  return status;
}

perflab_identity next_identity(perflab_participant& participant) {
  perflab_identity identity{};
  identity.bytes[0] = 0xd0;
  identity.bytes[15] = ++participant.entities;
  return identity;
}

// The messages of one writer come in order, so the whole delivery is under the participant's mutex, callbacks
// too.
void deliver(perflab_writer& writer, const std::vector<std::uint8_t>& bytes,
             const perflab_sample_identity& related) {
  perflab_participant& participant = *writer.participant;
  if (participant.ignore_local) return;
  for (perflab_reader* const reader : participant.readers) {
    if (reader->topic != writer.topic) continue;
    auto stored = std::make_unique<Stored>();
    stored->bytes = bytes;
    stored->writer = writer.identity;
    if (reader->related_samples) {
      stored->sequence = writer.sequence;
      stored->related = related;
    }
    stored->arrived_ns = participant.host.now_ns(participant.host.context);
    {
      const std::lock_guard lock(reader->mutex);
      const bool bounded = reader->qos.history == PERFLAB_KEEP_LAST;
      if (bounded && reader->history.size() >= static_cast<std::size_t>(reader->qos.depth))
        reader->history.pop_front();
      reader->history.push_back(std::move(stored));
    }
    if (reader->waitset != nullptr) {
      const std::lock_guard lock(reader->waitset->mutex);
      reader->waitset->changed.notify_all();
    }
    // Never two at a time for one reader: the callback that runs takes until nothing is left.
    if (reader->listener.on_data == nullptr || reader->telling) continue;
    reader->telling = true;
    reader->listener.on_data(reader->listener.context);
    reader->telling = false;
  }
}

perflab_status write_related(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                             const perflab_sample_identity* related, int64_t* sequence, perflab_error*) {
  std::vector<std::uint8_t> bytes;
  for (size_t i = 0; i < part_count; ++i) {
    const auto* const begin = static_cast<const std::uint8_t*>(parts[i].data);
    bytes.insert(bytes.end(), begin, begin + parts[i].size);
  }
  const std::lock_guard lock(writer->participant->mutex);
  ++writer->sequence;
  if (sequence != nullptr) *sequence = writer->sequence;
  deliver(*writer, bytes, related != nullptr ? *related : perflab_sample_identity{});
  return PERFLAB_OK;
}

template <typename Endpoint>
std::size_t count_peers(perflab_participant& participant, const std::vector<Endpoint*>& peers,
                        const std::string& topic) {
  const std::lock_guard lock(participant.mutex);
  if (participant.ignore_local) return 0;
  return static_cast<std::size_t>(
      std::count_if(peers.begin(), peers.end(), [&](const Endpoint* peer) { return peer->topic == topic; }));
}

// What is left of "rt/late".
void come_late(perflab_reader& reader) {
  if (reader.late == 0 || reader.last.empty()) return;
  --reader.late;
  {
    const std::lock_guard lock(reader.mutex);
    reader.history.push_back(std::make_unique<Stored>());
    reader.history.back()->bytes = reader.last;
  }
  if (reader.listener.on_data != nullptr) reader.listener.on_data(reader.listener.context);
}

perflab_status take(perflab_reader* reader, perflab_sample* sample, perflab_error*) {
  std::unique_ptr<Stored> stored;
  {
    const std::lock_guard lock(reader->mutex);
    if (!reader->history.empty()) {
      stored = std::move(reader->history.front());
      reader->history.pop_front();
    }
  }
  if (stored == nullptr) {
    come_late(*reader);
    return PERFLAB_NO_DATA;
  }
  reader->last = stored->bytes;
  *sample = {stored->bytes.data(), stored->bytes.size(), stored->writer,     stored->sequence,
             stored->related,      PERFLAB_TIME_UNKNOWN, stored->arrived_ns, stored.get()};
  static_cast<void>(stored.release());
  return PERFLAB_OK;
}

perflab_status wait(perflab_waitset* waitset, int64_t timeout_ns, uint64_t* ready, size_t capacity,
                    size_t* ready_count, perflab_error*) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(waitset->mutex);
  for (;;) {
    *ready_count = 0;
    for (const auto& [reader, cookie] : waitset->attached) {
      const std::lock_guard reader_lock(reader->mutex);
      if (!reader->history.empty() && *ready_count < capacity) ready[(*ready_count)++] = cookie;
    }
    if (*ready_count > 0 || waitset->woken) {
      waitset->woken = false;
      return PERFLAB_OK;
    }
    if (timeout_ns == PERFLAB_DURATION_INFINITE) {
      waitset->changed.wait(lock);
    } else if (waitset->changed.wait_until(lock, begin + std::chrono::nanoseconds(timeout_ns)) ==
               std::cv_status::timeout) {
      return PERFLAB_TIMEOUT;
    }
  }
}

constexpr perflab_middleware kDouble = {
    .abi = PERFLAB_MIDDLEWARE_ABI,
    .name = "double",
    .summary = "for tests, within one process",
    .version = [] { return "1"; },
    .capabilities =
        [] {
          return perflab_capabilities{.across_processes = false,
                                      .data_ready_callbacks = true,
                                      .source_timestamps = false,
                                      .reception_timestamps = true,
                                      .reports_endpoints = false,
                                      .related_samples = true,
                                      .loans = true};
        },
    .open =
        [](const perflab_host* host, const perflab_participant_settings* settings,
           perflab_participant** participant, perflab_error*) {
          *participant = new perflab_participant;
          (*participant)->host = *host;
          (*participant)->ignore_local = settings->ignore_local_endpoints;
          return PERFLAB_OK;
        },
    .close = [](perflab_participant* participant) { delete participant; },
    .describe = [](perflab_participant*) { return "{}"; },
    .create_writer =
        [](perflab_participant* participant, const perflab_endpoint_settings* settings,
           const perflab_listener*, perflab_writer** writer, perflab_error*) {
          const std::lock_guard lock(participant->mutex);
          *writer = new perflab_writer{
              participant, settings->topic, settings->fixed_size, next_identity(*participant), 0, 0};
          participant->writers.push_back(*writer);
          return PERFLAB_OK;
        },
    .destroy_writer =
        [](perflab_writer* writer) {
          if (writer->lent != 0) std::abort();  // every loan is ended before its writer
          {
            const std::lock_guard lock(writer->participant->mutex);
            std::erase(writer->participant->writers, writer);
          }
          delete writer;
        },
    .create_reader =
        [](perflab_participant* participant, const perflab_endpoint_settings* settings,
           const perflab_listener* listener, perflab_reader** reader, perflab_error*) {
          const std::lock_guard lock(participant->mutex);
          *reader = new perflab_reader;
          (*reader)->participant = participant;
          (*reader)->topic = settings->topic;
          (*reader)->related_samples = settings->related_samples;
          (*reader)->qos = settings->qos;
          if (listener != nullptr) (*reader)->listener = *listener;
          if ((*reader)->topic == "rt/late") (*reader)->late = 10;
          (*reader)->identity = next_identity(*participant);
          participant->readers.push_back(*reader);
          return PERFLAB_OK;
        },
    .destroy_reader =
        [](perflab_reader* reader) {
          {
            const std::lock_guard lock(reader->participant->mutex);
            std::erase(reader->participant->readers, reader);
            if (reader->waitset != nullptr) {
              const std::lock_guard waitset_lock(reader->waitset->mutex);
              std::erase_if(reader->waitset->attached, [reader](const auto& a) { return a.first == reader; });
            }
          }
          delete reader;
        },
    .writer_identity = [](const perflab_writer* writer) { return writer->identity; },
    .reader_identity = [](const perflab_reader* reader) { return reader->identity; },
    .matched_readers =
        [](perflab_writer* writer) {
          return count_peers(*writer->participant, writer->participant->readers, writer->topic);
        },
    .matched_writers =
        [](perflab_reader* reader) {
          return count_peers(*reader->participant, reader->participant->writers, reader->topic);
        },
    .lifespan = [](perflab_reader*, const perflab_identity*) -> std::int64_t {
      return PERFLAB_DURATION_INFINITE;
    },
    .write =
        [](perflab_writer* writer, const perflab_bytes* parts, size_t part_count, perflab_error* error) {
          return write_related(writer, parts, part_count, nullptr, nullptr, error);
        },
    .write_related = write_related,
    .loan =
        [](perflab_writer* writer, void** message, perflab_error* error) {
          if (writer->topic == "rt/exhausted")
            return fail(error, PERFLAB_FAILED, "double: no loan on " + writer->topic);
          ++writer->lent;
          *message = new std::uint8_t[writer->fixed_size];
          return PERFLAB_OK;
        },
    .write_loaned =
        [](perflab_writer* writer, void* message, perflab_error* error) {
          const perflab_bytes part{message, writer->fixed_size};
          const perflab_status status = write_related(writer, &part, 1, nullptr, nullptr, error);
          --writer->lent;
          delete[] static_cast<std::uint8_t*>(message);
          return status;
        },
    .discard_loan =
        [](perflab_writer* writer, void* message) {
          --writer->lent;
          delete[] static_cast<std::uint8_t*>(message);
        },
    .stamp_next = nullptr,
    .take = take,
    .return_sample = [](perflab_reader*,
                        perflab_sample* sample) { delete static_cast<Stored*>(sample->loan); },
    .create_waitset =
        [](perflab_participant*, perflab_waitset** waitset, perflab_error*) {
          *waitset = new perflab_waitset;
          return PERFLAB_OK;
        },
    .destroy_waitset =
        [](perflab_waitset* waitset) {
          for (const auto& [reader, cookie] : waitset->attached) reader->waitset = nullptr;
          delete waitset;
        },
    .attach =
        [](perflab_waitset* waitset, perflab_reader* reader, uint64_t cookie, perflab_error*) {
          const std::lock_guard lock(waitset->mutex);
          reader->waitset = waitset;
          waitset->attached.emplace_back(reader, cookie);
          return PERFLAB_OK;
        },
    .wait = wait,
    .wake =
        [](perflab_waitset* waitset) {
          const std::lock_guard lock(waitset->mutex);
          waitset->woken = true;
          waitset->changed.notify_all();
        },
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const perflab_middleware* perflab_middleware_plugin() {
  return &kDouble;
}
