"""What an app is called: by people, by Java's packages, and as a word that Kotlin, Swift, C and the shell take."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from xml.sax.saxutils import escape

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.c_identifiers import KEYWORDS as C_KEYWORDS

JAVA_KEYWORDS = frozenset(
    """abstract assert boolean break byte case catch char class const continue default do double else enum extends final
    finally float for goto if implements import in instanceof int interface is long native new null object package
    private protected public return short static strictfp super switch synchronized this throw throws transient true
    try typealias typeof val var volatile void when while as false fun""".split()  # noqa: SIM905
)
"""Words of Java and hard keywords of Kotlin: packages have to do without both."""
SWIFT_TAKEN = frozenset(
    """Accelerate Accessibility Any App Array BenchmarkView Bundle CameraModel CameraPreview CameraView CIContext Charts
    Classifier Combine Contacts ContentView CoreML Darwin Data Dispatch Engine EngineError Error Facts Float Foundation
    Image Int Intents Label Main Metal Network Observation Photos PhotosUI Pixels Port PreviewView Recognition Scene
    Security Self SimpleView Spatial Speech String Swift SwiftUI Symbols System TensorFlowLite Testing Tests Text Type
    UIKit View Vision XCTest""".split()  # noqa: SIM905
)
"""Words that a module of Swift must not be called: its language's, its libraries' and what these import, and those of
the project's files."""
LONGEST = 40  # characters


@dataclass(frozen=True)
class AppName:
    """The names of an app.

    Attributes:
        title: what people read.
        word: a word of letters and digits that begins with a capital, for modules, schemes and folders.
        package: of Java and Kotlin, and the bundle of iOS: ``com.example.flowers``.
    """

    title: str
    word: str
    package: str

    @property
    def small(self) -> str:
        """The word in small letters, for programs, services and C."""
        return self.word.lower()

    @property
    def bundle(self) -> str:
        """The package as an identifier of Apple's, which takes hyphens and no underscores."""
        return self.package.replace("_", "-")


def app_name(title: str, package: str | None = None) -> AppName:
    """The names that follow from a title.

    >>> app_name("Flowers of 2024")
    AppName(title='Flowers of 2024', word='FlowersOf2024', package='com.example.flowersof2024')

    Args:
        title: what a person calls the app.
        package: of Java; by default ``com.example.`` and the name.

    Raises:
        UsageError: the title has no letters that names are made of, or Java or Kotlin do not take the package.
    """
    if not title.strip() or any(not letter.isprintable() for letter in title):
        raise UsageError(f"an app cannot be called {title!r}", hint=f"give {option('name')} a line of text")
    parts = re.findall(r"[A-Za-z0-9]+", title)
    word = "".join(part[0].upper() + part[1:] for part in parts)[:LONGEST]
    if not re.match(r"[A-Za-z]", word):
        raise UsageError(
            f"'{title}' gives no name that Kotlin, Swift and C take: it begins with none of the letters a to z",
            hint=f"{option('name')}='My {title}'",
        )
    if word in SWIFT_TAKEN or word.lower() in C_KEYWORDS or word.lower() in JAVA_KEYWORDS:
        word += "App"
    return AppName(title.strip(), word, checked_package(package or f"com.example.{word.lower()}"))


def checked_package(package: str) -> str:
    """The package.

    Raises:
        UsageError: Java, Kotlin or the stores do not take it.
    """
    parts = package.split(".")
    why = ""
    if len(parts) < 2:
        why = "it has no dot"
    for part in parts:
        if part in JAVA_KEYWORDS:
            why = f"'{part}' is a word of Java or Kotlin"
        elif not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", part):
            why = f"'{part}' is not a letter and then letters, digits and _"
    if why:
        raise UsageError(f"{option('package')}={package}: {why}", hint=f"as in {option('package')}=com.example.flowers")
    return package


def in_android(text: str) -> str:
    """Text as a string resource of Android, which has escapes of its own beside those of XML."""
    plain = re.sub(r"([\\'\"])", r"\\\1", text)
    return escape(f"\\{plain}" if plain[:1] in "@?" else plain)


def in_kotlin(text: str) -> str:
    """Text as a string literal of Kotlin."""
    return json.dumps(text).replace("$", "\\$")


def in_swift(text: str) -> str:
    """Text as a string literal of Swift."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: f"\\u{{{ord(found[0]):x}}}", in_plist(text))


def in_plist(text: str) -> str:
    """Text as a quoted string of the old property lists that Xcode's projects are."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_unit(text: str) -> str:
    """Text as a value in a unit of systemd."""
    return text.replace("\\", "\\\\").replace("%", "%%")
