"""Orders and news over a socket pair."""

import socket
from collections.abc import Iterator

import pytest

from styx.cli.reload.control import News, Order, Orders, line_of, news_of


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_one_order_at_a_time(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    orders = Orders(theirs)
    ours.sendall(line_of(Order("import")) + line_of(Order("serve", first=True)) + b'{"do":')
    assert [orders.wait(), orders.wait()] == [Order("import"), Order("serve", first=True)]
    ours.sendall(b'"release"}\n')
    assert orders.wait() == Order("release")


def test_a_watcher_that_is_gone_means_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.close()
    orders = Orders(theirs)
    assert orders.wait() == Order("end")
    orders.tell(News("serving"))


def test_news(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    Orders(theirs).tell(News("failed", "two\nlines", ["/a"]))
    assert news_of(ours.recv(10_000)) == News("failed", "two\nlines", ["/a"])
