"""Worker processes: crashes, hangs, memory, threads, forks, and that none is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hostile import hostile_documents
from making import pdf, text

from pagelift.core import CorruptDocument, DocumentTimeout, Limits
from pagelift.documents import client, open_document

GOOD = pdf(text(72, 700, "Hello"))
ENDLESS = dict(hostile_documents(0))["pattern-storm.pdf"]


def words(content: bytes) -> list[str]:
    with open_document(content) as document:
        return [w.text for w in document.page(1).content.words]


def test_a_hang_ends_at_the_limit_and_only_for_its_document() -> None:
    healthy = open_document(GOOD)
    started = time.monotonic()
    document = open_document(ENDLESS, limits=Limits(page_seconds=0.5), name="slow.pdf")
    with pytest.raises(DocumentTimeout, match=r"slow\.pdf: picture of page 1 took longer than 0\.5 s; raise limits\.page_seconds"):
        document.image(1, 300)
    assert time.monotonic() - started < 5
    assert [w.text for w in healthy.page(1).content.words] == ["Hello"]
    assert document.page(1).content.words == ()  # the document itself can still be asked for what does not hang


def test_a_crash_is_an_error_of_its_document() -> None:
    document = open_document(ENDLESS, name="bad.pdf")

    def crash() -> None:
        time.sleep(0.3)
        for worker in list(client.documents_pool._busy):
            worker._process.kill()

    thread = threading.Thread(target=crash)
    thread.start()
    with pytest.raises(CorruptDocument, match=r"bad\.pdf: picture of page 1 ended the worker process"):
        document.image(1, 300)
    thread.join()
    assert words(GOOD) == ["Hello"]


def test_a_worker_that_died_while_idle_is_replaced() -> None:
    document = open_document(GOOD)
    client.shut_down()
    assert [w.text for w in document.page(1).content.words] == ["Hello"]


def test_many_documents_in_many_threads() -> None:
    contents = [pdf(text(72, 700, f"Number {n}")) for n in range(40)]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(words, contents)) == [["Number", str(n)] for n in range(40)]


def test_several_open_documents_in_one_thread() -> None:
    documents = [open_document(pdf(text(72, 700, f"Number {n}"))) for n in range(10)]
    for _ in range(2):
        for n, document in enumerate(documents):
            assert document.page(1).content.words[1].text == str(n)
            assert document.image(1, 20).size == (170, 220)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_workers_of_its_own() -> None:
    document = open_document(GOOD)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if words(GOOD) == ["Hello"] and len(document.page(1).content.words) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert words(GOOD) == ["Hello"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_workers_end_with_their_program_even_when_they_hang(end: str) -> None:
    code = f"""
import os, sys, threading, time
from pagelift.documents import client, open_document
document = open_document({ENDLESS!r})
threading.Thread(target=lambda: document.image(1, 300), daemon=True).start()
time.sleep(0.2)
print(next(iter(client.documents_pool._busy))._process.pid, flush=True)
{end}
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False).stdout
    pid = int(output)
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as status:
                if status.read().split()[2] == "Z":
                    return  # dead; its new parent has yet to reap it
        except FileNotFoundError:
            return
        time.sleep(0.05)
    pytest.fail(f"worker {pid} is still running")
