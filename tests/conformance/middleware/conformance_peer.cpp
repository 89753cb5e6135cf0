// The other process of the tests across processes: conformance_peer PLUGIN DOMAIN [KEY=VALUE...]
//
// Commands, one line each, each answered by one line ("error ..." if it failed):
//   writer|reader NAME TOPIC TYPE keep_last|keep_all reliable|best_effort volatile|transient_local DEPTH
//       [fixed|loans SIZE]       messages of that size only; and loaned
//       [data TEXT]              with that USER_DATA
//       [keyed]                  on a topic with keys
//       [filtered]               a writer that knows, or a reader that has, the filter of messages.h
//       [budget NANOSECONDS]     its latency budget
//   wait_matched NAME COUNT        until the endpoint has so many partners
//   write NAME FIRST COUNT SIZE    numbered messages
//   write_stamped NAME NUMBER SIZE NANOSECONDS   with that source time stamp
//   write_loaned NAME FIRST COUNT SIZE
//   write_related NAME NUMBER SIZE WRITER SEQUENCE    answers the sequence number of the message
//   take NAME COUNT SIZE           until so many have come, or for 20 s; intact ones have that size
//   destroy NAME
//   identity NAME
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>

#include "messages.h"
#include "middleware/host/plugin.h"

namespace {

using namespace perflab;
using namespace std::chrono_literals;

std::int64_t now_ns(void*) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <typename Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class Peer {
 public:
  explicit Peer(middleware::Participant participant) : participant_(std::move(participant)) {}

  std::string run(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    std::string name;
    in >> command >> name;
    if (command == "writer" || command == "reader") return create(command == "writer", name, in);
    if (command == "wait_matched") return wait_matched(name, in);
    if (command == "write") return write(name, in);
    if (command == "write_stamped") return write_stamped(name, in);
    if (command == "write_loaned") return write_loaned(name, in);
    if (command == "write_related") return write_related(name, in);
    if (command == "take") return take(name, in);
    if (command == "destroy") {
      writers_.erase(name);
      readers_.erase(name);
      return "ok";
    }
    if (command == "identity") {
      return writers_.contains(name) ? middleware::to_hex(writers_.at(name).identity())
                                     : middleware::to_hex(readers_.at(name).identity());
    }
    return "error: unknown command " + command;
  }

 private:
  std::string create(bool is_writer, const std::string& name, std::istream& in) {
    std::string topic, type, history, reliability, durability;
    perflab_qos qos = middleware::default_qos();
    in >> topic >> type >> history >> reliability >> durability >> qos.depth;
    qos.history = history == "keep_all" ? PERFLAB_KEEP_ALL : PERFLAB_KEEP_LAST;
    qos.reliability = reliability == "reliable" ? PERFLAB_RELIABLE : PERFLAB_BEST_EFFORT;
    qos.durability = durability == "transient_local" ? PERFLAB_TRANSIENT_LOCAL : PERFLAB_VOLATILE;
    middleware::EndpointSettings settings{.topic = topic, .type = type, .qos = qos};
    for (std::string form; in >> form;) {
      if (form == "data") {
        in >> settings.user_data;
      } else if (form == "budget") {
        in >> settings.qos.latency_budget_ns;
      } else if (form == "keyed") {
        settings.key = conformance::key_of_messages();
      } else if (form == "filtered") {
        settings.filters = {conformance::even_messages()};
      } else {
        in >> settings.fixed_size;
        settings.loans = form == "loans";
      }
    }
    if (is_writer) {
      writers_.emplace(name, participant_.create_writer(settings));
    } else {
      readers_.emplace(name, participant_.create_reader(settings));
    }
    return "ok";
  }

  std::string wait_matched(const std::string& name, std::istream& in) {
    std::size_t count = 0;
    in >> count;
    const auto now = [&] {
      return writers_.contains(name) ? writers_.at(name).matched_readers()
                                     : readers_.at(name).matched_writers();
    };
    if (eventually([&] { return now() == count; })) return "ok";
    return "error: matched " + std::to_string(now());
  }

  std::string write(const std::string& name, std::istream& in) {
    std::uint64_t first = 0, count = 0;
    std::size_t size = 0;
    in >> first >> count >> size;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = conformance::make_message(first + i, size);
      const perflab_bytes part{bytes.data(), bytes.size()};
      perflab_error error{};
      if (writers_.at(name).write({&part, 1}, error) != PERFLAB_OK)
        return std::string("error: ") + error.text;
    }
    return "wrote " + std::to_string(count);
  }

  std::string write_stamped(const std::string& name, std::istream& in) {
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::int64_t stamp_ns = 0;
    in >> number >> size >> stamp_ns;
    const auto bytes = conformance::make_message(number, size);
    const perflab_bytes part{bytes.data(), bytes.size()};
    perflab_error error{};
    middleware::Writer& writer = writers_.at(name);
    writer.stamp_next(stamp_ns);
    return writer.write({&part, 1}, error) == PERFLAB_OK ? "wrote 1" : std::string("error: ") + error.text;
  }

  std::string write_loaned(const std::string& name, std::istream& in) {
    std::uint64_t first = 0, count = 0;
    std::size_t size = 0;
    in >> first >> count >> size;
    middleware::Writer& writer = writers_.at(name);
    for (std::uint64_t i = 0; i < count; ++i) {
      void* message = nullptr;
      perflab_error error{};
      if (writer.loan(message, error) != PERFLAB_OK) return std::string("error: ") + error.text;
      const auto bytes = conformance::make_message(first + i, size);
      std::memcpy(message, bytes.data(), size);
      if (writer.write_loaned(message, error) != PERFLAB_OK) return std::string("error: ") + error.text;
    }
    return "wrote " + std::to_string(count);
  }

  std::string write_related(const std::string& name, std::istream& in) {
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::string writer;
    perflab_sample_identity related{};
    in >> number >> size >> writer >> related.sequence;
    related.writer = middleware::identity_from_hex(writer).value();
    const auto bytes = conformance::make_message(number, size);
    const perflab_bytes part{bytes.data(), bytes.size()};
    std::int64_t sequence = 0;
    perflab_error error{};
    if (writers_.at(name).write_related({&part, 1}, &related, &sequence, error) != PERFLAB_OK)
      return std::string("error: ") + error.text;
    return std::to_string(sequence);
  }

  std::string take(const std::string& name, std::istream& in) {
    std::uint64_t wanted = 0;
    std::size_t size = 0;
    in >> wanted >> size;
    std::uint64_t taken = 0, intact = 0, first = 0, last = 0;
    bool ordered = true;
    middleware::Reader& reader = readers_.at(name);
    eventually([&] {
      perflab_sample sample;
      perflab_error error{};
      while (reader.take(sample, error) == PERFLAB_OK) {
        const std::span bytes(sample.data, sample.size);
        const std::uint64_t number = conformance::number_of(bytes);
        if (taken++ == 0) {
          first = number;
        } else {
          ordered = ordered && number == last + 1;
        }
        last = number;
        intact += conformance::intact(bytes, size) ? 1 : 0;
        reader.return_sample(sample);
      }
      return taken >= wanted;
    });
    return "took " + std::to_string(taken) + " intact " + std::to_string(intact) + " ordered " +
           std::to_string(ordered ? 1 : 0) + " first " + std::to_string(first) + " last " +
           std::to_string(last);
  }

  middleware::Participant participant_;
  std::map<std::string, middleware::Writer> writers_;
  std::map<std::string, middleware::Reader> readers_;
};

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 3) {
    std::cerr << "usage: conformance_peer PLUGIN DOMAIN [KEY=VALUE...]\n";
    return 2;
  }
  try {
    middleware::ParticipantSettings settings;
    settings.domain = static_cast<std::uint32_t>(std::stoul(argv[2]));
    settings.participants_expected = 4;
    for (int i = 3; i < argc; ++i) {
      const std::string option = argv[i];
      const std::size_t split = option.find('=');
      settings.options.emplace_back(option.substr(0, split), option.substr(split + 1));
    }
    const perflab_host host{.now_ns = now_ns, .on_event = nullptr, .context = nullptr};
    Peer peer(middleware::Plugin::load(argv[1]).open(host, settings));
    std::cout << "ready" << std::endl;
    std::string line;
    while (std::getline(std::cin, line)) {
      std::string answer;
      try {
        answer = peer.run(line);
      } catch (const std::exception& failure) {
        answer = std::string("error: ") + failure.what();
      }
      std::cout << answer << std::endl;
    }
  } catch (const std::exception& failure) {
    std::cout << "error: " << failure.what() << std::endl;
    return 1;
  }
  return 0;
}
