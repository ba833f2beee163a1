#!/usr/bin/env python3
"""Checks that every public function and type of an installed header has a comment, and every function for users an example.

usage: check_comments.py [repository root]

The example may be in the comment of the function. It may also be in another comment of its type, or of the same paragraph of lines, if it
names the function. tools/comment_examples.py has it run. What is exempt stands below, with the reason.
"""

import re
import sys

import checking
import declarations

# No interface: a name in a namespace of these is checked for nothing.
INTERNAL = {"detail"}

# Commented, but shown by no example. By header, or by the name of a function, a type or a namespace.
OWN = "kiln's own; installed because templates of users' code need it"
RUNTIME = "for those who write a runtime: docs/architecture.md says how"
WITHOUT_EXAMPLE = {
    "kiln::check": OWN,
    "kiln::dispatch": OWN,
    "kiln::fusion": OWN,
    "kiln/autodiff/node.hpp": OWN,
    "kiln/fusion/batch.hpp": OWN,
    "kiln/fusion/record.hpp": OWN,
    "kiln/fusion/storage.hpp": OWN,
    "kiln/kernel/kernel_id.hpp": OWN,
    "kiln/kernel/wgsl_name.hpp": OWN,
    "kiln/support/rule_error.hpp": OWN,
    "kiln::Body": OWN,
    "kiln::cpu::Output::close": OWN,
    "kiln::Expr::graph": OWN,
    "kiln::Expr::id": OWN,
    "kiln::Expr::in_graph": OWN,
    "kiln::Expr::none": OWN,
    "kiln::ExprGraph": OWN,
    "kiln::RenderedSource": OWN,
    "kiln::SourceTemplate": OWN,
    "kiln::WeakValue": OWN,
    "kiln::adjoint": OWN,
    "kiln::bodies_interned": OWN,
    "kiln::evaluate": OWN,
    "kiln::infer_dtypes": OWN,
    "kiln::make_body": OWN,
    "kiln::Stream::append": OWN,
    "kiln::Stream::await": OWN,
    "kiln::Stream::drain_of": OWN,
    "kiln::Stream::finish": OWN,
    "kiln::Stream::flush": OWN,
    "kiln::Stream::handle_gone": OWN,
    "kiln::Stream::handle_made": OWN,
    "kiln::Stream::settle": OWN,
    "kiln::Stream::view": OWN,
    "kiln::refuse_rank": OWN,
    "kiln/runtime/runtime.hpp": RUNTIME,
    "kiln::Buffer": RUNTIME,
}
# Exceptions to those: what users call although it stands there.
WITH_EXAMPLE = {"kiln::Checkpoint", "kiln::Saver", "kiln::GradSlot", "kiln::Grads"}


def is_named(names, header, declared):
    """Whether the header, or a part of the declaration's name, is among the names."""
    parts = str(declared).split("::")
    return header in names or any("::".join(parts[:i + 1]) in names for i in range(len(parts)))


def shows(example, name):
    """Whether an example calls the function."""
    text = "\n".join(example)
    symbol = name.removeprefix("operator").strip()
    if symbol in ("()", "[]"):
        return symbol[0] in text
    if not re.match(r"\w", symbol):
        return symbol in text
    return re.search(rf"\b{re.escape(symbol)}\b", text) is not None


def examples_of(lines):
    return [example for _, example in declarations.examples(lines) if not declarations.is_fragment(example)]


def faults_of(root, header):
    text = (root / header).read_text()
    lines = text.splitlines()
    found = declarations.declarations(text)
    for declared in found:
        if INTERNAL & {*declared.scope}:
            continue
        comment = declarations.comment_of(lines, declared.line)
        if not comment:
            yield f"{header}:{declared.line}: {declared} has no comment"
        elif declared.kind == "function" and (is_named(WITH_EXAMPLE, header, declared) or
                                              not is_named(WITHOUT_EXAMPLE, header, declared)):
            owners = [owner for owner in found if owner.kind == "type" and
                      (*owner.scope, owner.name) == declared.scope and owner.line <= declared.line <= owner.body_end]
            around = declarations.paragraph_of(lines, declared.line)
            for owner in owners:
                around += ["", *declarations.comment_of(lines, owner.line), "", *lines[owner.line - 1:owner.body_end]]
            shown = examples_of(around)
            if not examples_of(comment) and not any(shows(example, declared.name) for example in shown):
                yield f"{header}:{declared.line}: {declared} has no example that runs"


def check(root):
    headers = declarations.public_headers(root)
    return len(headers), [fault for header in headers for fault in faults_of(root, header)]


if __name__ == "__main__":
    sys.exit(checking.run(check, "headers"))
