// Behaviour that only the double can produce on request (middleware_double.cpp): a message at the worst moment, a loan
// that is refused. Suites with "Scripted" in their name run only on the double; the others never run on it.
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

class ScriptedMessages : public AnyExecutor {};

// A message that comes after take() has found nothing, and before the executor knows that.
TEST_P(ScriptedMessages, AreNotLostWhenTheyComeWhileTheExecutorLeaves) {
  Inbox& inbox = subscribe(node(), "/late", kSmall, keep_all());
  Publisher& writer = publisher("/late", kSmall, keep_all());
  start();
  ASSERT_TRUE(send(writer, kSmall, 5));
  EXPECT_TRUE(eventually([&] { return inbox.count() == 11; })) << inbox.count();
  runtime().stop();
}

// For a wait-set nothing is ever taken in vain, nor within the process.
std::vector<Case> executors_that_take_in_vain() {
  std::vector<Case> cases = all_executors();
  std::erase_if(cases, [](const Case& one) {
    return one.kind == ExecutorKind::kSingleThreaded || one.kind == ExecutorKind::kLet || one.intra_process;
  });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(, ScriptedMessages, testing::ValuesIn(executors_that_take_in_vain()), case_name);

class ScriptedLoans : public Lab {
 protected:
  ScriptedLoans() { open(); }
  Publisher& lender(const std::string& topic) {
    return publisher(topic, kSmall, keep_last(10), PassBy::kLoaned);
  }
};

TEST_F(ScriptedLoans, ThatCannotBeHadAreFailedWrites) {
  EXPECT_FALSE(send_prepared(lender("/exhausted"), kSmall, 1));
  EXPECT_EQ(sink_.take_write_failures(), std::vector<std::string>{"double: no loan on rt/exhausted"});
}

TEST_F(ScriptedLoans, ThatAreTooSmallAreFailedWritesAndAllAreGivenBackAtTheEnd) {
  Publisher& writer = lender("/a");
  const Parts parts(kSmall, 1);
  const std::vector<std::uint8_t> larger(parts.bytes.size() + 1);
  EXPECT_FALSE(writer.prepare(parts.outgoing(larger)));
  EXPECT_EQ(sink_.take_write_failures().size(), 1u);
  EXPECT_TRUE(writer.prepare(parts.outgoing()));
  close();  // the double sees to it that this one has been ended
}

}  // namespace
}  // namespace perflab::runtime::conformance
