"""Sealed files: any model file encrypted with AES-256-GCM in chunks, so that it opens only with its key.

Layout, numbers little-endian: magic (8 bytes), chunk size (u32), size of the content (u64), salt (16), key check (16);
then the chunks, each with a 16-byte tag. HKDF-SHA256 of key and salt gives the file's own key and the key check, which
tells a wrong key from a changed file. A chunk's nonce is its number and whether it is the last (the STREAM construction
of Hoang, Reyhanitabar, Rogaway and Vizár, 2015), and the whole header is authenticated with each, so that no chunk can
be moved, dropped, or taken from another file.
"""

from __future__ import annotations

import hmac
import os
import struct
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pocketgraph.errors import FormatError, MissingExtraError, UsageError, option, quoted
from pocketgraph.formats.content import SEAL, Kind, of_content
from pocketgraph.formats.files import PathLike, check_not_model, mapped, reason, write_atomically
from pocketgraph.protobuf.wire import Buffer

HEADER = struct.Struct("<8sIQ16s16s")
CHUNK = 1 << 20  # bytes of content
LARGEST_CHUNK = 1 << 26
TAG = 16  # bytes that each chunk takes more than its content
KEY_BYTES = 32
KEY_VARIABLE = "POCKETGRAPH_KEY"
"""The environment variable that holds the key, as 64 hexadecimal digits, ``file:PATH`` or ``env:NAME``, for files that
are opened without one."""

Key: TypeAlias = bytes | str | os.PathLike[str] | Callable[[], bytes | str]
"""A key: 32 bytes; 64 hexadecimal digits; ``env:NAME``; ``file:PATH`` or a path object; or what gives one of the first
two when it is called."""


def is_sealed(buffer: Buffer) -> bool:
    """Whether a file begins as a sealed one does."""
    return buffer[: len(SEAL)] == SEAL


def seal(source: PathLike, target: PathLike, key: Key) -> None:
    """Writes an encrypted copy of a file, whole or not at all.

    Raises:
        UsageError: the key is not one, the file is sealed already or a directory, its weights lie beside it, or the
            copy would replace it.
        MissingExtraError: the package ``cryptography`` is not installed.
        FormatError: the file cannot be read.
    """
    if os.path.isdir(source):
        hint = "a file is sealed; pocketgraph freeze_graph makes one of a SavedModel"
        raise UsageError("this is a directory", where=os.fspath(source), hint=hint)
    content = mapped(source)
    if is_sealed(content):
        raise UsageError("the file is sealed already", where=os.fspath(source))
    if of_content(content) in (Kind.TENSORFLOW_JS, Kind.TENSORFLOW_JS_LAYERS, Kind.KERAS_JSON):
        hint = f"pocketgraph convert {quoted(os.fspath(source))} frozen.pb makes one file of both"
        raise UsageError("the weights lie beside this file and would stay readable", where=os.fspath(source), hint=hint)
    check_not_model(os.fspath(target), os.fspath(source))
    write_atomically(target, sealed_chunks(content, key_bytes(key)))


def unseal(source: PathLike, target: PathLike, key: Key) -> None:
    """Writes the decrypted copy of a sealed file, whole or not at all; errors as for ``opened``."""
    write_atomically(target, opened(mapped(source), key, os.fspath(source)))


def new_key() -> str:
    """A random key as hexadecimal digits."""
    return os.urandom(KEY_BYTES).hex()


def opened(buffer: Buffer, key: Key | None, file: str) -> bytes:
    """The content of a sealed file, in memory only.

    Raises:
        FormatError: it is not sealed; the key is another one; it was cut or changed. Each is said as what it is.
        UsageError: there is no key, or it is not one.
        MissingExtraError: the package ``cryptography`` is not installed.
    """
    if not is_sealed(buffer):
        raise FormatError("this is not a sealed file", where=file, hint="it needs no key")
    if len(buffer) < HEADER.size:
        raise FormatError("the sealed file is cut short within its header", where=file, hint="copy it again")
    if key is None:
        key = key_of_environment()
    if key is None:
        raise UsageError(
            "this is a sealed file, and no key was given", where=file,
            hint=f"give {option('key-file', 'key')}, or set {KEY_VARIABLE}",
        )  # fmt: skip
    header = buffer[: HEADER.size]
    _, chunk, size, salt, check = HEADER.unpack(header)
    if not 0 < chunk <= LARGEST_CHUNK:
        raise FormatError(f"the sealed file's header was changed: it says chunks of {chunk:,} bytes", where=file)
    count = max(1, -(-size // chunk))
    whole = HEADER.size + size + count * TAG
    secret, expected = derived(key_bytes(key), salt)
    if not hmac.compare_digest(expected, check):
        raise FormatError("the key is not the one that the file was sealed with", where=file)
    if len(buffer) != whole:
        how = "cut short" if len(buffer) < whole else "longer than it was"
        raise FormatError(f"the sealed file is {how}: it has {len(buffer):,} of {whole:,} bytes", where=file)
    cipher, invalid = aes(secret)
    pieces = []
    at = HEADER.size
    for number in range(count):
        last = number == count - 1
        length = (size - number * chunk if last else chunk) + TAG
        try:
            pieces.append(cipher.decrypt(nonce(number, last), buffer[at : at + length], header))
        except invalid:
            raise FormatError(
                f"the sealed file was changed after it was sealed (in bytes {at:,} to {at + length:,}, or its header)",
                where=file, hint="copy it again from where it was sealed",
            ) from None  # fmt: skip
        at += length
    return b"".join(pieces)


def sealed_chunks(content: Buffer, key: bytes) -> Iterator[bytes]:
    """The pieces of a sealed file with this content."""
    size = len(content)
    salt = os.urandom(16)
    secret, check = derived(key, salt)
    cipher, _ = aes(secret)
    header = HEADER.pack(SEAL, CHUNK, size, salt, check)
    yield header
    count = max(1, -(-size // CHUNK))
    for number in range(count):
        piece = content[number * CHUNK : (number + 1) * CHUNK]
        yield cipher.encrypt(nonce(number, number == count - 1), piece, header)


def nonce(number: int, last: bool) -> bytes:
    """Twelve bytes, never the same twice under one file's key."""
    return struct.pack(">IQ", int(last), number)


def derived(key: bytes, salt: bytes) -> tuple[bytes, bytes]:
    """The file's own key and its key check: HKDF with SHA-256 (RFC 5869), 48 bytes."""
    extracted = hmac.digest(salt, key, "sha256")
    first = hmac.digest(extracted, b"pocketgraph sealed v1\x01", "sha256")
    second = hmac.digest(extracted, first + b"pocketgraph sealed v1\x02", "sha256")
    return first, second[:16]


def key_of_environment() -> str | None:
    """The key for files that are opened without one, in the words of ``Key``; None where there is none."""
    value = os.environ.get(KEY_VARIABLE)
    return f"env:{KEY_VARIABLE}" if value and not value.startswith(("env:", "file:")) else value or None


def aes(secret: bytes) -> tuple[Any, type[Exception]]:
    """The cipher, and what it raises for changed bytes."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtraError(
            "sealed files need the package cryptography", hint="pip install 'pocketgraph[sealed]'"
        ) from None
    return AESGCM(secret), InvalidTag


def key_bytes(key: Key) -> bytes:
    """The 32 bytes that a key stands for; the message of an error never holds a part of it.

    Raises:
        UsageError: it stands for none.
    """
    value: Any = key() if callable(key) else key
    place = "the key"
    if isinstance(value, os.PathLike):
        value = f"file:{os.fspath(value)}"
    if isinstance(value, str) and value.startswith("env:"):
        place = f"the environment variable {value[4:]}"
        if value[4:] not in os.environ:
            raise UsageError(f"{place} is not set", hint="it should hold the key's 64 hexadecimal digits")
        value = os.environ[value[4:]]
    elif isinstance(value, str) and value.startswith("file:"):
        place = value[5:]
        try:
            with open(place, "rb") as file:
                value = file.read(4096)
        except OSError as error:
            raise UsageError(f"the key cannot be read: {reason(error)}", where=place) from None
    if isinstance(value, bytes | bytearray) and len(value) == KEY_BYTES:
        return bytes(value)
    if isinstance(value, bytes | bytearray):  # PowerShell's > writes UTF-16, other editors a mark in front of UTF-8
        value = value.decode("utf-16" if value.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig", "replace")
    try:
        found = bytes.fromhex(value.strip())
    except (ValueError, AttributeError):
        found = b""
    if len(found) != KEY_BYTES:
        raise UsageError(
            f"{place} is not a key: a key is 32 bytes or 64 hexadecimal digits",
            hint="pocketgraph seal --new-key model.key",
        )
    return found
