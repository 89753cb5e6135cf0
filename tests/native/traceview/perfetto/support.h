// Hand-made tables for tests of exports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traceview/export_input.h"

namespace perflab::traceview {

struct MadeTables {
  Hosts hosts;
  Processes processes;
  Threads threads;
  Callbacks callbacks;
  CallbackInstances callback_instances;
  Publications publications;
  Takes takes;
  IntraDeliveries intra_deliveries;
  Phases phases;
  FunctionCalls function_calls;
  ThreadStates thread_states;
  WakeUps wake_ups;
  ExportOptions options;

  MadeTables() { hosts.name.push(std::string_view("robot")); }

  [[nodiscard]] ExportTables tables() const {
    return {&hosts, &processes,        &threads, &callbacks,      &callback_instances, &publications,
            &takes, &intra_deliveries, &phases,  &function_calls, &thread_states,      &wake_ups};
  }

  std::int32_t process(std::int32_t pid, const std::string& name, std::int32_t host = 0) {
    processes.host.push(host), processes.pid.push(pid);
    options.processes.push_back(name);
    return static_cast<std::int32_t>(processes.pid.size()) - 1;
  }
  std::int32_t thread(std::optional<std::int32_t> of, std::int32_t tid, const std::string& name,
                      std::int32_t host = 0) {
    threads.host.push(host), threads.process.push(of), threads.tid.push(tid);
    threads.first_ns.push_null(), threads.last_ns.push_null();
    options.threads.push_back(name);
    return static_cast<std::int32_t>(threads.tid.size()) - 1;
  }
  std::int32_t callback(const std::string& name) {
    callbacks.handle.push(0x1000 + callbacks.handle.size());
    callbacks.kind.push(CallbackKind::timer);
    callbacks.symbol.push_null();
    options.callbacks.push_back(name);
    return static_cast<std::int32_t>(callbacks.handle.size()) - 1;
  }
  void instance(std::int32_t of, std::int32_t on, std::int64_t start_ns, std::optional<std::int64_t> end_ns) {
    callback_instances.callback.push(of), callback_instances.thread.push(on);
    callback_instances.start_ns.push(start_ns), callback_instances.end_ns.push(end_ns);
    callback_instances.take.push_null(), callback_instances.delivery.push_null();
    callback_instances.due_ns.push_null();
  }
  void phase(std::int32_t on, PhaseKind kind, std::int64_t start_ns, std::int64_t end_ns) {
    phases.thread.push(on), phases.phase.push(kind), phases.start_ns.push(start_ns);
    phases.end_ns.push(end_ns), phases.callback.push_null();
  }
  void call(std::int32_t on, std::int32_t function, std::int64_t start_ns, std::int64_t end_ns) {
    function_calls.thread.push(on), function_calls.function.push(function);
    function_calls.start_ns.push(start_ns), function_calls.end_ns.push(end_ns);
  }
  void state(std::int32_t of, ThreadState what, std::int64_t start_ns, std::int64_t end_ns,
             std::optional<std::int32_t> cpu, std::optional<EndState> end = std::nullopt) {
    thread_states.thread.push(of), thread_states.state.push(what);
    thread_states.start_ns.push(start_ns), thread_states.end_ns.push(end_ns);
    thread_states.cpu.push(cpu), thread_states.priority.push_null();
    end ? thread_states.end_state.push(*end) : thread_states.end_state.push_null();
    thread_states.inferred.push(0);
  }
};

}  // namespace perflab::traceview
