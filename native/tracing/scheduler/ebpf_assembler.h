// A small assembler for BPF: instructions as calls, jumps to labels, checked when the code is taken.
//
// Example: a program that says 1 unless the process that runs is number 0.
//   Assembler code;
//   const auto idle = code.label();
//   code.call(BPF_FUNC_get_current_pid_tgid);
//   code.jump_if(r0, Condition::equal, 0, idle);
//   code.move(r0, 1);
//   code.place(idle);
//   code.exit();
//   const std::vector<bpf_insn> program = code.finish();
//
// Registers, as the kernel's calling convention has them
// (Documentation/bpf/standardization/instruction-set.rst): r0 is what a call or the program gives back, r1 to
// r5 are arguments and lost in a call, r6 to r9 are kept, r10 is the (read-only) end of 512 bytes of stack.
// All are 64 bits wide; what is loaded in less is extended by zeros.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perflab::tracing::bpf {

enum class Register : std::uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10 };
using enum Register;

enum class Width : std::uint8_t { byte = BPF_B, half = BPF_H, word = BPF_W, quad = BPF_DW };

// Of all 64 bits; a number given as the other side is extended by its sign.
enum class Condition : std::uint8_t {
  equal = BPF_JEQ,
  not_equal = BPF_JNE,
  below = BPF_JLT,     // unsigned
  at_least = BPF_JGE,  // unsigned
  any_bit = BPF_JSET,  // the two have a bit in common
  signed_below = BPF_JSLT,
  signed_at_least = BPF_JSGE
};

class Assembler {
 public:
  class Label {
    friend class Assembler;
    explicit Label(std::size_t number) : number_(number) {}
    std::size_t number_;
  };

  // Place in the code to jump to, forward or backward.
  [[nodiscard]] Label label();
  void place(Label label);

  void move(Register to, Register from);
  void move(Register to, std::int32_t number);
  void add(Register to, Register by);
  void add(Register to, std::int32_t number);
  void bit_and(Register to, std::int32_t number);
  void shift_left(Register to, std::int32_t bits);
  void shift_right(Register to, std::int32_t bits);  // zeros come in

  void load(Width width, Register to, Register base, std::int16_t offset);
  void store(Width width, Register base, std::int16_t offset, Register from);
  void store(Width width, Register base, std::int16_t offset, std::int32_t number);
  // Adds to memory in one step, whoever else does at the same time. Word or quad.
  void atomic_add(Width width, Register base, std::int16_t offset, Register by);

  void jump(Label to);
  void jump_if(Register left, Condition condition, Register right, Label to);
  void jump_if(Register left, Condition condition, std::int32_t right, Label to);

  // The map that the descriptor stands for, as the helpers take it.
  void load_map(Register to, int descriptor);
  // An address inside the only value of an array map with one entry.
  void load_map_value(Register to, int descriptor, std::uint32_t offset);
  void call(bpf_func_id helper);
  void exit();

  // The program. std::logic_error where a label was never placed or a jump is too far.
  [[nodiscard]] std::vector<bpf_insn> finish() const;

 private:
  struct Jump {
    std::size_t instruction, label;
  };

  void emit(int code, Register to, Register from, std::int16_t offset, std::int32_t number);
  void emit_jump(int code, Register left, Register right, std::int32_t number, Label to);

  std::vector<bpf_insn> code_;
  std::vector<std::size_t> places_;  // by label; kNowhere until placed
  std::vector<Jump> jumps_;
};

}  // namespace perflab::tracing::bpf
