"""Links between pages and into the project: each leads to something that is there."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from tests.docs.pages import ROOT, Page


def broken_links(page: Page) -> Iterator[str]:
    """Say which links of a page lead nowhere. Addresses elsewhere are only looked at: nothing here asks a network."""
    for link in page.links:
        parts = urlsplit(link.text)
        if parts.scheme:
            if parts.scheme != "https" or not parts.netloc:
                yield f"{page.name}:{link.line}: {link.text} is no https address"
            continue
        path = (page.path.parent / unquote(parts.path)).resolve()
        there = page if not parts.path else Page(path)
        if parts.path and not (path.is_relative_to(ROOT) and path.exists()):
            yield f"{page.name}:{link.line}: {link.text} leads nowhere"
        elif parts.fragment and (there.path.suffix != ".md" or parts.fragment not in there.anchors):
            yield f"{page.name}:{link.line}: {link.text}: no such heading"


def unreachable_pages(pages: tuple[Page, ...]) -> Iterator[str]:
    """Say which pages no other page links to."""
    reached = {
        (page.path.parent / urlsplit(link.text).path).resolve()
        for page in pages
        for link in page.links
        if urlsplit(link.text).path and not urlsplit(link.text).scheme
    }
    for page in pages:
        if page.path not in reached and page.path.parent != ROOT:
            yield f"{page.name}: no page links to it"
