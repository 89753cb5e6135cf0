"""Conservation per edge, and where every missing message is counted."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support import checkpoint, edge, publisher, service

from perflab.statistics.accounting import AccountingError, Accounts, Edge, account


def only(accounts: Accounts) -> Edge:
    assert len(accounts.edges) == 1
    return accounts.edges[0]


def lost(e: Edge) -> tuple[int | None, int | None, int | None]:
    return e.pre_match, e.gap, e.tail


def test_publishers_and_edges_of_different_processes_are_joined() -> None:
    accounts = account([checkpoint([publisher(10)]), checkpoint(edges=[edge(10, 0, 9)])])
    assert only(accounts).sent == 10
    assert lost(only(accounts)) == (0, 0, 0)
    assert accounts.complete


def test_what_is_missing_at_the_end_is_tail() -> None:
    assert lost(only(account([checkpoint([publisher(10)], [edge(7, 0, 6)])]))) == (0, 0, 3)


def test_what_is_missing_in_between_is_gap() -> None:
    assert lost(only(account([checkpoint([publisher(10)], [edge(8, 0, 9, gap=2)])]))) == (0, 2, 0)


def test_what_is_missing_at_the_head_is_gap_if_matched_at_the_start() -> None:
    assert lost(only(account([checkpoint([publisher(10)], [edge(6, 3, 9, gap=1)])]))) == (0, 4, 0)


def test_what_is_missing_at_the_head_is_pre_match_if_not_matched_at_the_start() -> None:
    accounts = account([checkpoint([publisher(10)], [edge(6, 3, 9, gap=1)])], matched_at_start=False)
    assert lost(only(accounts)) == (3, 1, 0)


def test_warm_up_is_excluded_by_sequence() -> None:
    assert lost(only(account([checkpoint([publisher(10, first=5)], [edge(9, 5, 13)])]))) == (0, 0, 1)


@pytest.mark.parametrize(("matched", "expected"), [(True, (0, 0, 10)), (False, (10, 0, 0))])
def test_an_edge_that_received_nothing(matched: bool, expected: tuple[int, int, int]) -> None:
    accounts = account([checkpoint([publisher(10)], [edge(0)])], matched_at_start=matched)
    assert lost(only(accounts)) == expected


def filtered_accounts(wanted: int, received: Any, **more: Any) -> Accounts:
    """A publisher of 10 messages, of which a content filter wants so many."""
    sender = {**publisher(10), "wanted": {"key < 3": wanted}}
    receiver = checkpoint(edges=[{**received, "filter": "key < 3"}])
    return account([checkpoint([sender]), {**receiver, **more}])


def test_what_a_filter_does_not_want_is_neither_received_nor_lost() -> None:
    found = only(filtered_accounts(4, edge(4, 0, 3)))
    assert (found.sent, found.filtered, found.received, lost(found)) == (4, 6, 4, (0, 0, 0))


@pytest.mark.parametrize(
    ("received", "missing"), [(edge(3, 0, 3, gap=1), (0, 1, 0)), (edge(2, 1, 2), (0, 1, 1)), (edge(0), (0, 0, 4))]
)
def test_what_a_filter_wants_and_does_not_get_is_lost(received: Any, missing: tuple[int, int, int]) -> None:
    found = only(filtered_accounts(4, received))
    assert (found.sent, found.filtered, lost(found)) == (4, 6, missing)


def test_a_filter_that_wants_nothing_loses_nothing() -> None:
    found = only(filtered_accounts(0, edge(0)))
    assert (found.sent, found.filtered, lost(found)) == (0, 10, (0, 0, 0))


def test_more_received_than_a_filter_wants_does_not_add_up() -> None:
    accounts = filtered_accounts(3, edge(4, 0, 3))
    assert not accounts.complete
    assert only(accounts).filtered is None


def test_a_publisher_that_does_not_know_the_filter_does_not_add_up() -> None:
    accounts = account([checkpoint([publisher(10)], [edge(4, 0, 3, filter="key < 3")])])
    assert "of which None pass the content filter 'key < 3'" in accounts.problems[0]


def test_a_message_that_no_filter_wants_is_a_problem() -> None:
    accounts = filtered_accounts(4, edge(4, 0, 3), unwanted_messages=1)
    assert not accounts.complete
    assert "1 messages were received although the content filters" in accounts.problems[0]


def test_without_a_filter_nothing_is_filtered() -> None:
    assert only(account([checkpoint([publisher(10)], [edge(10, 0, 9)])])).filtered == 0


def test_an_edge_of_the_graph_that_no_process_knows_has_lost_everything() -> None:
    accounts = account([checkpoint([publisher(10)])], [("/a", "/t", "/b")])
    assert lost(only(accounts)) == (0, 0, 10)


def test_a_publisher_that_sent_nothing_loses_nothing() -> None:
    accounts = account([checkpoint([publisher(0)], [edge(0)])])
    assert only(accounts).sent == 0
    assert lost(only(accounts)) == (0, 0, 0)


def test_without_a_final_checkpoint_only_what_the_edge_saw_is_known() -> None:
    accounts = account([checkpoint([publisher(10)]), checkpoint(edges=[edge(5, 0, 5, gap=1)], final=False)])
    assert not accounts.complete
    assert only(accounts).sent is None
    assert only(accounts).received == 5
    assert lost(only(accounts)) == (None, 1, None)


def test_a_process_without_any_checkpoint_makes_the_accounts_incomplete() -> None:
    accounts = account([None, checkpoint(edges=[edge(5, 0, 4)])], [("/a", "/t", "/b"), ("/x", "/y", "/z")])
    assert not accounts.complete
    assert only(accounts).sent is None


@pytest.mark.parametrize(
    "bad",
    [
        edge(9, 0, 9),  # one message less than its sequence numbers say
        edge(10, 1, 10),  # more than was sent
        edge(11, 0, 10),
        edge(3, None, None),
        edge(10, 0, 9, gap=1),
    ],
)
def test_counts_that_do_not_add_up_name_the_edge(bad: dict[str, Any]) -> None:
    accounts = account([checkpoint([publisher(10)], [bad])])
    assert not accounts.complete
    assert [p.partition(" does not add up")[0] for p in accounts.problems] == ["edge /a -> /b on /t"]
    assert only(accounts).received == bad["received"]
    assert only(accounts).sent is None


def test_messages_of_a_publisher_that_sent_none_are_refused() -> None:
    accounts = account([checkpoint([publisher(0)], [edge(1, 0, 0)])])
    assert accounts.problems == ("edge /a -> /b on /t does not add up: 1 received from a publisher that sent none",)


def test_a_publisher_or_edge_recorded_twice_is_refused() -> None:
    with pytest.raises(AccountingError, match="publisher /a /t is recorded twice"):
        account([checkpoint([publisher(1), publisher(1)])])
    with pytest.raises(AccountingError, match="edge /a -> /b on /t is recorded twice"):
        account([checkpoint([publisher(1)], [edge(1, 0, 0)]), checkpoint(edges=[edge(1, 0, 0)])])


def test_a_final_histogram_that_contradicts_its_count_is_refused() -> None:
    record = edge(5, 0, 4)
    record["latency"] = {**record["latency"], "count": 6}
    accounts = account([checkpoint([publisher(5)], [record])])
    assert accounts.problems == ("edge /a -> /b on /t: latency: a histogram has 5 values but a count of 6",)


def test_a_checkpoint_that_lacks_a_member_is_refused() -> None:
    with pytest.raises(AccountingError, match="lacks 'received'"):
        account([checkpoint(edges=[{k: v for k, v in edge(1, 0, 0).items() if k != "received"}])])


@pytest.mark.parametrize("seed", range(30))
def test_conservation_holds_for_any_pattern_of_loss(seed: int) -> None:
    rng = random.Random(seed)
    first, sent = rng.randint(0, 50), rng.randint(1, 200)
    arrived = sorted(s for s in range(first, first + sent) if rng.random() < rng.choice((0.05, 0.5, 0.97)))
    gap = arrived[-1] - arrived[0] + 1 - len(arrived) if arrived else 0
    record = edge(len(arrived), arrived[0] if arrived else None, arrived[-1] if arrived else None, gap)
    for matched in (True, False):
        result = only(account([checkpoint([publisher(sent, first)], [record])], matched_at_start=matched))
        assert result.sent == sent == result.received + sum(n or 0 for n in lost(result))


def test_replies_are_accounted_like_messages_and_kept_apart_from_them() -> None:
    record = service(publisher(10), edge(7, 0, 7, gap=1))
    accounts = account([checkpoint([publisher(4)], [edge(4, 0, 3)], [record])], (), [("/a", "/add", "/s")])
    assert accounts.complete
    assert [s.key for s in accounts.services] == [("/a", "/add", "/s")]
    replies = accounts.services[0].replies
    assert (replies.sent, replies.received, lost(replies)) == (10, 7, (0, 1, 2))
    assert only(accounts).sent == 4
    assert [p.key for p in accounts.publishers] == [("/a", "/t")]


def test_replies_that_do_not_add_up_name_the_service() -> None:
    accounts = account([checkpoint(services=[service(publisher(10), edge(9, 0, 9))])])
    assert not accounts.complete
    assert accounts.problems[0].startswith("service /add of /a at /s does not add up: 10 sent")


def test_a_service_that_its_client_does_not_record_contradicts_a_complete_trial() -> None:
    accounts = account([checkpoint()], (), [("/a", "/add", "/s")])
    assert accounts.problems == ("service /add of /a at /s is in the graph, but its client recorded nothing about it",)
    assert account([checkpoint(final=False)], (), [("/a", "/add", "/s")]).problems == ()


def test_without_a_final_checkpoint_the_replies_that_are_missing_are_not_known() -> None:
    accounts = account([checkpoint(services=[service(publisher(10), edge(7, 0, 6))], final=False)])
    replies = accounts.services[0].replies
    assert (replies.sent, replies.received, lost(replies)) == (None, 7, (None, 0, None))


def test_a_service_recorded_twice_or_in_part_is_refused() -> None:
    record = service(publisher(1), edge(1, 0, 0))
    with pytest.raises(AccountingError, match="service /add of /a at /s is recorded twice"):
        account([checkpoint(services=[record, record])])
    with pytest.raises(AccountingError, match="lacks 'replies'"):
        account([checkpoint(services=[{k: v for k, v in record.items() if k != "replies"}])])
