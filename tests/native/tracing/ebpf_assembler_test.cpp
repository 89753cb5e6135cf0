// Encodings as the kernel's Documentation/bpf/standardization/instruction-set.rst gives them: opcode,
// registers (source above, destination below), offset, number.
#include "tracing/scheduler/ebpf_assembler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

namespace perflab::tracing::bpf {
namespace {

using Bytes = std::array<std::uint8_t, 8>;

std::vector<Bytes> bytes_of(const Assembler& code) {
  std::vector<Bytes> all;
  for (const bpf_insn& instruction : code.finish()) {
    Bytes& bytes = all.emplace_back();
    std::memcpy(bytes.data(), &instruction, sizeof bytes);
  }
  return all;
}

template <typename Write>
Bytes encoded(Write write) {
  Assembler code;
  write(code);
  const auto all = bytes_of(code);
  EXPECT_EQ(all.size(), 1u);
  return all.front();
}

TEST(EbpfAssembler, MovesAndArithmetic) {
  EXPECT_EQ(encoded([](auto& c) { c.move(r6, r1); }), (Bytes{0xbf, 0x16, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.move(r0, 1); }), (Bytes{0xb7, 0x00, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.move(r3, -1); }), (Bytes{0xb7, 0x03, 0, 0, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(encoded([](auto& c) { c.add(r7, r0); }), (Bytes{0x0f, 0x07, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.add(r2, -4); }), (Bytes{0x07, 0x02, 0, 0, 0xfc, 0xff, 0xff, 0xff}));
  EXPECT_EQ(encoded([](auto& c) { c.bit_and(r1, 0xff); }), (Bytes{0x57, 0x01, 0, 0, 0xff, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.shift_left(r1, 6); }), (Bytes{0x67, 0x01, 0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.shift_right(r1, 16); }), (Bytes{0x77, 0x01, 0, 0, 16, 0, 0, 0}));
}

TEST(EbpfAssembler, LoadsAndStoresOfAllWidths) {
  EXPECT_EQ(encoded([](auto& c) { c.load(Width::byte, r1, r6, 32); }),
            (Bytes{0x71, 0x61, 32, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.load(Width::half, r1, r6, 2); }), (Bytes{0x69, 0x61, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.load(Width::word, r1, r10, -4); }),
            (Bytes{0x61, 0xa1, 0xfc, 0xff, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.load(Width::quad, r1, r6, 0x120); }),
            (Bytes{0x79, 0x61, 0x20, 0x01, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::byte, r9, 1, r1); }), (Bytes{0x73, 0x19, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::half, r9, 2, r1); }), (Bytes{0x6b, 0x19, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::word, r9, 4, r1); }), (Bytes{0x63, 0x19, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::quad, r9, 8, r1); }), (Bytes{0x7b, 0x19, 8, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::word, r9, 20, 5); }),
            (Bytes{0x62, 0x09, 20, 0, 5, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.store(Width::quad, r9, 8, 0); }), (Bytes{0x7a, 0x09, 8, 0, 0, 0, 0, 0}));
}

TEST(EbpfAssembler, AtomicAdditions) {
  EXPECT_EQ(encoded([](auto& c) { c.atomic_add(Width::word, r7, 4, r1); }),
            (Bytes{0xc3, 0x17, 4, 0, 0, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.atomic_add(Width::quad, r7, 8, r1); }),
            (Bytes{0xdb, 0x17, 8, 0, 0, 0, 0, 0}));
  Assembler code;
  EXPECT_THROW(code.atomic_add(Width::half, r7, 0, r1), std::logic_error);
}

TEST(EbpfAssembler, CallsAndExit) {
  EXPECT_EQ(encoded([](auto& c) { c.call(BPF_FUNC_ktime_get_ns); }), (Bytes{0x85, 0, 0, 0, 5, 0, 0, 0}));
  EXPECT_EQ(encoded([](auto& c) { c.exit(); }), (Bytes{0x95, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(EbpfAssembler, MapsTakeTwoPlaces) {
  Assembler code;
  code.load_map(r1, 0x1234);
  code.load_map_value(r7, 3, 64);
  EXPECT_EQ(bytes_of(code), (std::vector<Bytes>{{0x18, 0x11, 0, 0, 0x34, 0x12, 0, 0},
                                                {0, 0, 0, 0, 0, 0, 0, 0},
                                                {0x18, 0x27, 0, 0, 3, 0, 0, 0},
                                                {0, 0, 0, 0, 64, 0, 0, 0}}));
}

TEST(EbpfAssembler, JumpsCountFromTheInstructionAfterThem) {
  Assembler code;
  const auto top = code.label(), end = code.label();
  code.place(top);
  code.jump_if(r0, Condition::equal, 0, end);          // over 3
  code.jump_if(r1, Condition::at_least, r2, top);      // back by 2
  code.jump(end);                                      // over 1
  code.jump_if(r4, Condition::signed_below, -1, top);  // back by 4
  code.place(end);
  code.exit();
  EXPECT_EQ(bytes_of(code), (std::vector<Bytes>{{0x15, 0x00, 3, 0, 0, 0, 0, 0},
                                                {0x3d, 0x21, 0xfe, 0xff, 0, 0, 0, 0},
                                                {0x05, 0x00, 1, 0, 0, 0, 0, 0},
                                                {0xc5, 0x04, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff},
                                                {0x95, 0, 0, 0, 0, 0, 0, 0}}));
}

TEST(EbpfAssembler, ConditionsWithNumbersAndRegisters) {
  const std::pair<Condition, std::uint8_t> codes[] = {
      {Condition::equal, 0x15},          {Condition::not_equal, 0x55}, {Condition::below, 0xa5},
      {Condition::at_least, 0x35},       {Condition::any_bit, 0x45},   {Condition::signed_below, 0xc5},
      {Condition::signed_at_least, 0x75}};
  for (const auto& [condition, opcode] : codes) {
    Assembler code;
    const auto next = code.label();
    code.jump_if(r1, condition, 7, next);
    code.jump_if(r1, condition, r2, next);
    code.place(next);
    code.exit();
    const auto bytes = bytes_of(code);
    EXPECT_EQ(bytes[0], (Bytes{opcode, 0x01, 1, 0, 7, 0, 0, 0}));
    EXPECT_EQ(bytes[1], (Bytes{static_cast<std::uint8_t>(opcode | 8), 0x21, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(EbpfAssembler, ALabelThatIsNowhereOrTwiceIsAnError) {
  Assembler code;
  const auto nowhere = code.label(), twice = code.label();
  code.jump(nowhere);
  EXPECT_THROW((void)code.finish(), std::logic_error);
  code.place(twice);
  EXPECT_THROW(code.place(twice), std::logic_error);
}

TEST(EbpfAssembler, AJumpThatDoesNotFitIsAnError) {
  const auto over = [](int instructions) {
    Assembler code;
    const auto end = code.label();
    code.jump(end);
    for (int i = 0; i < instructions; ++i) code.move(r0, i);
    code.place(end);
    code.exit();
    return code.finish();
  };
  EXPECT_EQ(over(32767).front().off, 32767);
  EXPECT_THROW((void)over(32768), std::logic_error);
}

}  // namespace
}  // namespace perflab::tracing::bpf
