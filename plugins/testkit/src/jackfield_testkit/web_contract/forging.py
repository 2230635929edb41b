"""Nothing inside is asked, however an address is spelt, whatever a name means and wherever a page leads."""

from __future__ import annotations

from contextlib import suppress

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.web_contract.network import PUBLIC
from jackfield_testkit.web_contract.outing import Outing, on_a_loop

_INSIDE = (
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0x7f.1/",
    "http://localhost/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::]/", "http://0.0.0.0/", "http://0/", "http://10.0.0.1/", "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
    "http://100.64.0.1/", "https://127.0.0.1/", "http://127.0.0.1:22/", "http://127\u30020\u30020\u30021/",
    "http://\u2460\u2461\u2466.0.0.1/",
)  # fmt: skip
_NO_ADDRESSES = (
    "ftp://x.example/", "file:///etc/passwd", "gopher://127.0.0.1:70/", "javascript:1", "//x.example/", "x",
    "", "http://", "http:///path", "https://x.example:99999/", "http://[::1/", "http://a\x00b.example/",
    "data:text/plain,hi", f"http://x.example/{'a' * 20_000}",
)  # fmt: skip
_LEADING_INSIDE = (
    ("127.0.0.1",), (PUBLIC, "127.0.0.1"), ("::ffff:127.0.0.1",), ("::1",), ("64:ff9b::7f00:1",),
    ("169.254.169.254",), ("10.0.0.1",),
)  # fmt: skip
_TARGETS = (
    "http://169.254.169.254/latest/meta-data/", "http://localhost/", "//10.0.0.1/", "http://[::1]/",
    "http://[::ffff:127.0.0.1]/", "http://2130706433/", "file:///etc/passwd", "ftp://x.example/",
    "http://127.0.0.1:1/", "http://inner.example/", "http://[",
)  # fmt: skip


class ForgingTests:
    """Where an address may lead."""

    @on_a_loop
    async def test_no_spelling_of_an_inner_address_is_asked(self, outing: Outing) -> None:
        """Loopback, private, link-local and shared addresses, in every way that a machine understands."""
        async with outing.web() as web:
            for url in (*_INSIDE, outing.site.url("/", "localhost")):
                error = await outing.refuses(web, url)
                same(error.retryable, False, f"whether {url} can be tried again")
        self._nobody_was_asked(outing)

    @on_a_loop
    async def test_what_is_no_address_of_the_web_is_refused(self, outing: Outing) -> None:
        """Other schemes, no host, no port, and what is endless; the sentence about it is short."""
        async with outing.web() as web:
            for url in _NO_ADDRESSES:
                error = await outing.refuses(web, url)
                holds(len(error.message) < 1000, f"the message repeats {len(error.message)} characters")
        self._nobody_was_asked(outing)

    @on_a_loop
    async def test_passwords_are_neither_sent_nor_repeated(self, outing: Outing) -> None:
        """An address with credentials in it is refused without a word of them."""
        async with outing.web() as web:
            error = await outing.refuses(web, outing.site.url("/", "ann:hunter2@127.0.0.1"))
        holds("hunter2" not in f"{error.message} {error.suggestion}", "the message repeats the password")
        self._nobody_was_asked(outing)

    @on_a_loop
    async def test_a_name_that_leads_inside_is_not_asked(self, outing: Outing) -> None:
        """Not even when only one of its addresses does."""
        async with outing.web() as web:
            for number, addresses in enumerate(_LEADING_INSIDE):
                outing.network.names[f"inner{number}.example"] = [addresses]
                await outing.refuses(web, outing.site.url("/", f"inner{number}.example"))
        self._nobody_was_asked(outing)

    @on_a_loop
    async def test_a_name_that_changes_its_mind_leads_nowhere(self, outing: Outing) -> None:
        """The connection goes to the address that was looked at, or to none."""
        outing.site.page("/", "Inside.", "text/plain")
        async with outing.web() as web:
            for number in range(3):
                host = f"fickle{number}.example"
                # The first answers are harmless, and every later one leads inside.
                outing.network.names[host] = [*[(PUBLIC,)] * (number + 1), ("127.0.0.1",)]
                # At a public address nobody answers here, and how that is said is tested elsewhere.
                with suppress(Exception):
                    await web.fetch(outing.site.url("/", host))
        same(outing.site.asked, [], "what was asked of the site inside")

    @on_a_loop
    async def test_every_redirect_is_looked_at_again(self, outing: Outing) -> None:
        """A page may lead anywhere, and what is inside stays there."""
        outing.network.names["inner.example"] = [("192.168.1.1",)]
        async with outing.web() as web:
            for target in (*_TARGETS, outing.site.url("/secret", "localhost")):
                await outing.refuses(web, outing.site.redirects("/", target))
        found = {asked.path for asked in outing.site.asked}
        same(found, {"/"}, "what was asked of the site")
        wanted = {address for address in outing.network.connections if address[1] != outing.site.port}
        same(wanted, set(), "where connections were made to")

    @staticmethod
    def _nobody_was_asked(outing: Outing) -> None:
        same(outing.network.connections, [], "where connections were made to")
        same(outing.site.asked, [], "what was asked of the site")
