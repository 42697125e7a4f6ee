"""What the shells do with ``--option=value`` when the Tab key is pressed, which click leaves to each of them.

bash takes it for three words. zsh and fish take it for one, in whose place a value alone would be put.
"""

from __future__ import annotations

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete, add_completion_class

ZSH_START = """#compdef %(prog_name)s

(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
"""
"""A start-up file in which no completion was set up has no compdef."""
ZSH = ZshComplete.source_template.replace("#compdef %(prog_name)s\n", ZSH_START, 1).replace(
    "_path_files", "compset -P '--*='; _path_files"
)
FISH = """\
function %(complete_func)s
    set -l word (commandline -t)
    set -l option (string match -r -- '^--[^=]*=' $word)
    for completion in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=$word %(prog_name)s)
        set -l told (string split -m 1 "," -- $completion)
        switch $told[1]
            case dir file
                for path in (__fish_complete_path $told[2])
                    echo -- "$option$path"
                end
            case plain
                echo -- $told[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Bash(BashComplete):
    """Words that bash took apart at an equals sign are one."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, last = super().get_completion_args()
        found: list[str] = []
        for word in (*words, last):
            if found and (word == "=" or (found[-1].startswith("--") and found[-1].endswith("="))):
                found[-1] += word
            else:
                found.append(word)
        return found[:-1], found[-1]


class _Zsh(ZshComplete):
    """What is offered for a value stands behind its option."""

    source_template = ZSH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return behind_option(super().get_completions(args, incomplete), incomplete)


class _Fish(FishComplete):
    """What is offered for a value stands behind its option."""

    source_template = FISH

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        return behind_option(super().get_completions(args, incomplete), incomplete)


def behind_option(items: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """The items, with the ``--option=`` that the word begins with, but for files, which the shell itself finds."""
    option, equals, _ = incomplete.partition("=")
    if not equals or not option.startswith("-"):
        return items
    return [
        CompletionItem(f"{option}={item.value}", type=item.type, help=item.help) if item.type == "plain" else item
        for item in items
    ]


def use_shells() -> None:
    """Has click complete by these."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)
