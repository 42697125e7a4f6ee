"""Every way in which people name a checkpoint."""

import pathlib

import pytest

from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix, read_state, step_of


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    for step in (9, 10):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"")
        (tmp_path / f"model.ckpt-{step}.data-00000-of-00001").write_bytes(b"")
        (tmp_path / f"model.ckpt-{step}.meta").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("suffix", ["", ".index", ".data-00000-of-00001", ".meta"])
def test_any_of_its_files_names_it(folder: pathlib.Path, suffix: str) -> None:
    assert find_prefix(folder / f"model.ckpt-9{suffix}") == str(folder / "model.ckpt-9")


def test_a_directory_without_state_gives_the_highest_step(folder: pathlib.Path) -> None:
    assert find_prefix(folder) == str(folder / "model.ckpt-10")


def test_the_state_file_decides(folder: pathlib.Path) -> None:
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-9"\nall_model_checkpoint_paths: "model.ckpt-9"\n'
    )
    assert find_prefix(folder) == str(folder / "model.ckpt-9")
    assert find_prefix(folder / "checkpoint") == str(folder / "model.ckpt-9")


@pytest.mark.parametrize(
    "path", ["/home/ann/run/model.ckpt-9", r"C:\\Users\\ann\\run\\model.ckpt-9", "run/model.ckpt-9"]
)
def test_a_directory_that_was_moved(folder: pathlib.Path, path: str) -> None:
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{path}"\n')
    assert find_prefix(folder) == str(folder / "model.ckpt-9")


def test_a_state_file_that_names_what_is_not_there(folder: pathlib.Path) -> None:
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-11"')
    with pytest.raises(FormatError, match=r"model.ckpt-11, which is not here .* name another one: model.ckpt-10"):
        find_prefix(folder)


def test_a_saved_model_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "variables").mkdir()
    (tmp_path / "variables" / "variables.index").write_bytes(b"")
    assert find_prefix(tmp_path) == str(tmp_path / "variables" / "variables")


def test_several_models_in_a_directory_are_listed(folder: pathlib.Path) -> None:
    (folder / "other.index").write_bytes(b"")
    with pytest.raises(FormatError, match=r"several checkpoints .*model.ckpt-10.*other"):
        find_prefix(folder)


def test_what_is_not_there_is_said_with_what_is(folder: pathlib.Path) -> None:
    with pytest.raises(
        FormatError, match=r"Input checkpoint '.*modle.ckpt-9' doesn't exist!.* did you mean '.*model.ckpt-9'"
    ):
        find_prefix(folder / "modle.ckpt-9")
    with pytest.raises(FormatError, match="there are no checkpoints in"):
        find_prefix(folder / "sub" / "model")


def test_an_empty_directory(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="there is no checkpoint in this directory"):
        find_prefix(tmp_path)


def test_a_data_file_without_its_index(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "m.data-00000-of-00001"
    file.write_bytes(b"x")
    with pytest.raises(FormatError, match="index is missing"):
        find_prefix(file)


def test_other_files_are_told_apart(tmp_path: pathlib.Path) -> None:
    index = tmp_path / "old.ckpt"  # a V2 index under another name
    index.write_bytes(bytes(40) + (0xDB4775248B80FB57).to_bytes(8, "little"))
    with pytest.raises(FormatError, match="not a checkpoint"):
        find_prefix(index)
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(FormatError, match=r"this is not a checkpoint.*; give the checkpoint's prefix"):
        find_prefix(text)


def test_the_text_form_with_escapes_and_comments(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text(
        "# written by hand\nmodel_checkpoint_path : 'a b\\'s\\303\\244'\n"
        'all_model_checkpoint_paths: "x\\"y"  all_model_checkpoint_paths: "z\\\\w"\nlast_preserved_timestamp: 3.5\n'
    )
    assert read_state(str(file)) == ("a b'sä", ['x"y', "z\\w"])
    file.write_text("model_checkpoint_path: unquoted")
    with pytest.raises(FormatError, match="names no model_checkpoint_path"):
        read_state(str(file))


def test_steps() -> None:
    assert [step_of(name) for name in ("a/model.ckpt-1000", "model.ckpt", "x-1-2")] == [1000, -1, 2]


@pytest.mark.parametrize("named", ["a\0b", "\0/model", "model\0"])
def test_a_path_that_no_file_can_have(folder: pathlib.Path, named: str) -> None:
    (folder / "checkpoint").write_bytes(b'model_checkpoint_path: "%s"' % named.encode())
    with pytest.raises(FormatError, match=r"says that the latest checkpoint is .*, which is not here"):
        find_prefix(folder)
    with pytest.raises(FormatError, match="doesn't exist"):
        find_prefix(named)
