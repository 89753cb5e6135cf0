#include "tracing/scheduler/ebpf_assembler.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace perflab::tracing::bpf {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

int bits(Width width) noexcept { return static_cast<int>(width); }
int bits(Condition condition) noexcept { return static_cast<int>(condition); }

}  // namespace

void Assembler::emit(int code, Register to, Register from, std::int16_t offset, std::int32_t number) {
  bpf_insn instruction{};
  instruction.code = static_cast<__u8>(code);
  instruction.dst_reg = static_cast<__u8>(to) & 0xf;
  instruction.src_reg = static_cast<__u8>(from) & 0xf;
  instruction.off = offset;
  instruction.imm = number;
  code_.push_back(instruction);
}

Assembler::Label Assembler::label() {
  places_.push_back(kNowhere);
  return Label(places_.size() - 1);
}

void Assembler::place(Label label) {
  if (places_[label.number_] != kNowhere) throw std::logic_error("BPF: a label is placed twice");
  places_[label.number_] = code_.size();
}

void Assembler::move(Register to, Register from) { emit(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }

void Assembler::move(Register to, std::int32_t number) {
  emit(BPF_ALU64 | BPF_MOV | BPF_K, to, r0, 0, number);
}

void Assembler::add(Register to, Register by) { emit(BPF_ALU64 | BPF_ADD | BPF_X, to, by, 0, 0); }

void Assembler::add(Register to, std::int32_t number) {
  emit(BPF_ALU64 | BPF_ADD | BPF_K, to, r0, 0, number);
}

void Assembler::bit_and(Register to, std::int32_t number) {
  emit(BPF_ALU64 | BPF_AND | BPF_K, to, r0, 0, number);
}

void Assembler::shift_left(Register to, std::int32_t bits) {
  emit(BPF_ALU64 | BPF_LSH | BPF_K, to, r0, 0, bits);
}

void Assembler::shift_right(Register to, std::int32_t bits) {
  emit(BPF_ALU64 | BPF_RSH | BPF_K, to, r0, 0, bits);
}

void Assembler::load(Width width, Register to, Register base, std::int16_t offset) {
  emit(BPF_LDX | BPF_MEM | bits(width), to, base, offset, 0);
}

void Assembler::store(Width width, Register base, std::int16_t offset, Register from) {
  emit(BPF_STX | BPF_MEM | bits(width), base, from, offset, 0);
}

void Assembler::store(Width width, Register base, std::int16_t offset, std::int32_t number) {
  emit(BPF_ST | BPF_MEM | bits(width), base, r0, offset, number);
}

void Assembler::atomic_add(Width width, Register base, std::int16_t offset, Register by) {
  if (width != Width::word && width != Width::quad)
    throw std::logic_error("BPF: atomic operations are of words and quads");
  emit(BPF_STX | BPF_ATOMIC | bits(width), base, by, offset, BPF_ADD);
}

void Assembler::emit_jump(int code, Register left, Register right, std::int32_t number, Label to) {
  jumps_.push_back({code_.size(), to.number_});
  emit(BPF_JMP | code, left, right, 0, number);
}

void Assembler::jump(Label to) { emit_jump(BPF_JA, r0, r0, 0, to); }

void Assembler::jump_if(Register left, Condition condition, Register right, Label to) {
  emit_jump(bits(condition) | BPF_X, left, right, 0, to);
}

void Assembler::jump_if(Register left, Condition condition, std::int32_t right, Label to) {
  emit_jump(bits(condition) | BPF_K, left, r0, right, to);
}

void Assembler::load_map(Register to, int descriptor) {
  emit(BPF_LD | BPF_IMM | BPF_DW, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, descriptor);
  emit(0, r0, r0, 0, 0);  // a load of 64 bits takes two places
}

void Assembler::load_map_value(Register to, int descriptor, std::uint32_t offset) {
  emit(BPF_LD | BPF_IMM | BPF_DW, to, static_cast<Register>(BPF_PSEUDO_MAP_VALUE), 0, descriptor);
  emit(0, r0, r0, 0, static_cast<std::int32_t>(offset));
}

void Assembler::call(bpf_func_id helper) { emit(BPF_JMP | BPF_CALL, r0, r0, 0, helper); }

void Assembler::exit() { emit(BPF_JMP | BPF_EXIT, r0, r0, 0, 0); }

std::vector<bpf_insn> Assembler::finish() const {
  std::vector<bpf_insn> program = code_;
  for (const Jump& jump : jumps_) {
    const std::size_t place = places_[jump.label];
    if (place == kNowhere)
      throw std::logic_error("BPF: instruction " + std::to_string(jump.instruction) +
                             " jumps to a label that is not placed");
    // Counted from the instruction after the jump.
    const auto distance =
        static_cast<std::ptrdiff_t>(place) - static_cast<std::ptrdiff_t>(jump.instruction) - 1;
    if (distance < std::numeric_limits<std::int16_t>::min() ||
        distance > std::numeric_limits<std::int16_t>::max())
      throw std::logic_error("BPF: the jump at instruction " + std::to_string(jump.instruction) +
                             " is too far: " + std::to_string(distance));
    program[jump.instruction].off = static_cast<std::int16_t>(distance);
  }
  return program;
}

}  // namespace perflab::tracing::bpf
