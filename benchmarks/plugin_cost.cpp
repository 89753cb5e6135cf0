// What the plug-in of a library adds to a message, beside a bare program on the same library: one writer and
// one reader in one process and one thread, write and take in turn. The bare program carries the same bytes
// in the same type, and does nothing else.
//
//   plugin_cost_LIBRARY cyclonedds|fastdds PLUGIN DOMAIN OTHER_DOMAIN
//
// Prints one JSON object: ns of CPU time per message of both, median over batches that alternate, and the
// difference of each pair of batches with the interval of its median.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "measure/clock.h"
#include "middleware/host/plugin.h"
#ifdef PERFLAB_COST_FASTDDS
#include "middleware/fastdds/message.h"
#endif
#ifdef PERFLAB_COST_CYCLONEDDS
#include <dds/dds.h>

#include "middleware/cyclonedds/message.h"
#endif

namespace {

// Where objects lie in memory decides over misses of the first-level cache, and so over some 20 ns a message. So
// that this is chance, and not the same luck in every process, what malloc() gives while both are made has room of
// random size.
std::atomic<bool> g_scatter{false};
std::atomic<std::uint64_t> g_random{0};

}  // namespace

extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) {
  if (g_scatter.load(std::memory_order_relaxed)) {
    // xorshift64 (Marsaglia 2003)
    std::uint64_t random = g_random.load(std::memory_order_relaxed);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    g_random.store(random, std::memory_order_relaxed);
    size += 16 * (random % 64);
  }
  return __libc_malloc(size);
}

namespace {

using namespace perflab;

constexpr int kBatches = 201;
constexpr int kMessages = 2'000;  // per batch
constexpr std::size_t kSize = 104;
constexpr const char* kTopic = "rt/cost";
constexpr const char* kType = "perflab_msgs::msg::dds_::Cost_";

std::array<std::uint8_t, kSize> g_message{0, 1, 0, 0};

std::int64_t now_ns(void*) {
  static const measure::MonotonicClock clock;
  return clock.now();
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "plugin_cost: %s\n", what);
  std::exit(1);
}

// One message, written and taken. Takes down what it needs with itself.
using Exchange = std::function<void()>;

Exchange by_plugin(const std::string& file, std::uint32_t domain) {
  struct State {
    middleware::Participant participant;
    middleware::Writer writer;
    middleware::Reader reader;
  };
  const perflab_host host{.now_ns = now_ns, .on_event = nullptr, .context = nullptr};
  middleware::Participant participant = middleware::Plugin::load(file).open(host, {.domain = domain});
  perflab_qos qos = middleware::default_qos();
  qos.reliability = PERFLAB_BEST_EFFORT;  // or heartbeats wake another thread of the library
  middleware::Writer writer = participant.create_writer({.topic = kTopic, .type = kType, .qos = qos});
  middleware::Reader reader = participant.create_reader({.topic = kTopic, .type = kType, .qos = qos});
  while (writer.matched_readers() != 1) sched_yield();
  const auto state = std::make_shared<State>(std::move(participant), std::move(writer), std::move(reader));
  return [state] {
    const perflab_bytes part{g_message.data(), g_message.size()};
    perflab_error error;
    perflab_sample sample;
    if (state->writer.write({&part, 1}, error) != PERFLAB_OK) fail(error.text);
    if (state->reader.take(sample, error) != PERFLAB_OK) fail("a message was not there");
    state->reader.return_sample(sample);
  };
}

#ifdef PERFLAB_COST_FASTDDS
// A reader must be notified of messages: in Fast DDS by a listener.
struct Heard final : middleware::fastdds::dds::DataReaderListener {
  void on_data_available(middleware::fastdds::dds::DataReader*) override {
    messages.store(messages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> messages{0};
};

Exchange bare_fastdds(std::uint32_t domain) {
  using namespace middleware::fastdds;
  namespace dds = middleware::fastdds::dds;  // the library has one of that name, too
  const std::shared_ptr<dds::DomainParticipant> participant(
      dds::DomainParticipantFactory::get_instance()->create_participant(domain, dds::PARTICIPANT_QOS_DEFAULT),
      [](dds::DomainParticipant* made) {
        if (made == nullptr) return;
        made->delete_contained_entities();
        dds::DomainParticipantFactory::get_instance()->delete_participant(made);
      });
  dds::TypeSupport type(new MessageType(kType, 0, nullptr));
  if (participant == nullptr || !succeeded(type.register_type(participant.get()))) fail("no participant");
  auto* const topic = participant->create_topic(kTopic, kType, dds::TOPIC_QOS_DEFAULT);
  // The QoS that the plug-in gives.
  dds::DataWriterQos offered;
  dds::DataReaderQos requested;
  const auto apply = [](auto& qos) {
    qos.history().kind = dds::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = 10;
    qos.reliability().kind = dds::BEST_EFFORT_RELIABILITY_QOS;
    qos.durability().kind = dds::VOLATILE_DURABILITY_QOS;
    qos.resource_limits().allocated_samples = 1;
    qos.resource_limits().extra_samples = 1;
    qos.resource_limits().max_instances = 1;
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
  };
  apply(offered);
  apply(requested);
  offered.resource_limits().max_samples = offered.resource_limits().max_samples_per_instance = 10;
  requested.resource_limits().max_samples = requested.resource_limits().max_samples_per_instance = 0;
  requested.reader_resource_limits().max_samples_per_read = 1;
  static Heard heard;
  auto* const writer =
      participant->create_publisher(dds::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, offered);
  auto* const reader = participant->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT)
                           ->create_datareader(topic, requested, &heard);
  if (writer == nullptr || reader == nullptr) fail("no endpoints");
  for (dds::PublicationMatchedStatus status; status.current_count != 1; sched_yield())
    writer->get_publication_matched_status(status);
  return [participant, writer, reader] {
    const perflab_bytes part{g_message.data(), g_message.size()};
    Outgoing message{{.outgoing = true}, &part, 1, kSize};
    dds::LoanableSequence<View> values;
    dds::SampleInfoSeq infos;
    if (!succeeded(writer->write(&message, dds::HANDLE_NIL))) fail("not written");
    if (!succeeded(reader->take(values, infos, 1))) fail("a message was not there");
    reader->return_loan(values, infos);
  };
}
#endif

#ifdef PERFLAB_COST_CYCLONEDDS
Exchange bare_cyclonedds(std::uint32_t domain) {
  using namespace middleware::cyclonedds;
  static const perflab_host host{.now_ns = now_ns, .on_event = nullptr, .context = nullptr};
  const dds_entity_t participant = dds_create_participant(domain, nullptr, nullptr);
  ddsi_sertype* type = new_type(kType, &host, nullptr, 0);
  const dds_entity_t topic = dds_create_topic_sertype(participant, kTopic, &type, nullptr, nullptr, nullptr);
  dds_qos_t* const qos = dds_create_qos();
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
  const dds_entity_t writer = dds_create_writer(participant, topic, qos, nullptr);
  const dds_entity_t reader = dds_create_reader(participant, topic, qos, nullptr);
  if (participant < 0 || topic < 0 || writer < 0 || reader < 0) fail("no endpoints");
  while (dds_get_matched_subscriptions(writer, nullptr, 0) != 1) sched_yield();
  const std::shared_ptr<void> entities(nullptr, [participant](void*) { dds_delete(participant); });
  return [entities, type, writer, reader] {
    const perflab_bytes part{g_message.data(), g_message.size()};
    if (dds_writecdr(writer, new_message(type, &part, 1)) != DDS_RETCODE_OK) fail("not written");
    ddsi_serdata* data = nullptr;
    dds_sample_info_t info;
    if (dds_takecdr(reader, &data, 1, &info, DDS_ANY_STATE) != 1) fail("a message was not there");
    ddsi_serdata_unref(data);
  };
}
#endif

// CPU time: what else the machine does is not counted.
double batch(const Exchange& exchange) {
  const auto spent_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double begin = spent_ns();
  for (int i = 0; i < kMessages; ++i) exchange();
  return (spent_ns() - begin) / kMessages;
}

double quantile(std::vector<double> values, std::size_t rank) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(rank));
  return values[rank];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: plugin_cost_LIBRARY cyclonedds|fastdds PLUGIN DOMAIN OTHER_DOMAIN");
  const auto domain = static_cast<std::uint32_t>(std::atoi(argv[3]));
  g_random = std::random_device()() + std::uint64_t{1};
  g_scatter = true;
  Exchange bare;
#ifdef PERFLAB_COST_FASTDDS
  if (std::string_view(argv[1]) == "fastdds") bare = bare_fastdds(domain);
#endif
#ifdef PERFLAB_COST_CYCLONEDDS
  if (std::string_view(argv[1]) == "cyclonedds") bare = bare_cyclonedds(domain);
#endif
  if (!bare) fail("the library is not known to this build");
  // Another domain: neither hears the other.
  Exchange plugin = by_plugin(argv[2], static_cast<std::uint32_t>(std::atoi(argv[4])));
  std::vector<double> plugin_ns, bare_ns, difference_ns;
  batch(plugin);
  batch(bare);
  g_scatter = false;
  for (int i = 0; i < kBatches; ++i) {
    const bool first = i % 2 == 0;  // who comes first has the other's caches
    const double one = batch(first ? plugin : bare);
    const double other = batch(first ? bare : plugin);
    plugin_ns.push_back(first ? one : other);
    bare_ns.push_back(first ? other : one);
    difference_ns.push_back(plugin_ns.back() - bare_ns.back());
  }
  // Order statistics of the median, 95 %: n / 2 -+ 0.98 sqrt(n).
  const double half = 0.98 * std::sqrt(kBatches);
  const auto low = static_cast<std::size_t>(kBatches / 2.0 - half);
  const auto high = static_cast<std::size_t>(kBatches / 2.0 + half);
  std::printf(
      "{\"library\": \"%s\", \"batches\": %d, \"plugin_ns\": %.1f, \"bare_ns\": %.1f, \"added_ns\": %.1f, "
      "\"interval\": [%.1f, %.1f]}\n",
      argv[1], kBatches, quantile(plugin_ns, kBatches / 2), quantile(bare_ns, kBatches / 2),
      quantile(difference_ns, kBatches / 2), quantile(difference_ns, low), quantile(difference_ns, high));
  bare = nullptr;
  plugin = nullptr;
}
