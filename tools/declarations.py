"""What the installed headers of kiln declare, with the comments beside it.

The headers are formatted by clang-format, and this reads them as that: it splits them into words, and follows braces, `public:` and
`private:`. It is no compiler. tools/check_comments.py and tools/comment_examples.py use it.
"""

import dataclasses
import pathlib
import re

WORD = re.compile(r'R"\w*\(.*?\)\w*"|//[^\n]*|"(?:\\.|[^"\\])*"|operator(?:\(\)|\[\]|[-+*/%^&|~!=<>,]+)|'
                  r"[A-Za-z_]\w*|\d[\w.']*|'(?:\\.|[^'\\])+'|::|->|\S", re.DOTALL)
EXAMPLE = re.compile(r"^\s*///( {5,})(\S.*)$")
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass
class Declaration:
    line: int          # of its first word, counted from 1
    kind: str          # "function" or "type"
    scope: tuple       # names of the namespaces and types around it
    name: str
    body_end: int = 0  # of a type: its last line
    parameters: str = ""  # of a function: their words, without defaults
    defined: bool = False  # whether its body follows

    def __str__(self):
        return "::".join([*self.scope, self.name])


def public_headers(root):
    """The headers that `cmake --install` lays out: cmake/KilnInstallHeaders.cmake says where that begins."""
    script = (root / "cmake/KilnInstallHeaders.cmake").read_text()
    left, found = re.search(r"^set\(left ([^)]*)\)", script, re.MULTILINE)[1].split(), []
    while left:
        header = left.pop(0)
        if header not in found:
            found.append(header)
            left += re.findall(r'^#include "(kiln/[^"]+)"', (root / header).read_text(), re.MULTILINE)
    return sorted(found)


def words(text):
    """(word, line) of everything except comments and lines of the preprocessor."""
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    for match in WORD.finditer(text):
        if not match[0].startswith("//"):
            yield match[0], text.count("\n", 0, match.start()) + 1


class Reader:
    """Reads declarations. `at` is the place among the words."""

    def __init__(self, text):
        self.words = list(words(text))
        self.at = 0
        self.found = []

    def word(self, ahead=0):
        return self.words[self.at + ahead][0] if self.at + ahead < len(self.words) else ""

    def line(self):
        return self.words[min(self.at, len(self.words) - 1)][1]

    def skip(self):
        """Over one word, or over all between brackets."""
        closing = CLOSING.get(self.word())
        self.at += 1
        if closing is not None:
            self.skip_to(closing)
            self.at += 1

    def skip_template(self):
        """Over <...>. Within it there is no comparison, unless in parentheses."""
        depth = 0
        while self.at < len(self.words):
            depth += (self.word() == "<") - (self.word() == ">")
            self.skip()
            if depth == 0:
                return

    def skip_to(self, ends):
        while self.at < len(self.words) and self.word() not in ends:
            self.skip()

    def scope(self, names, access):
        """All declarations up to the end of a namespace or type. `access`: whether they are public."""
        while self.at < len(self.words) and self.word() != "}":
            if self.word() in ("public", "private", "protected") and self.word(1) == ":":
                access = self.word() == "public"
                self.at += 2
            elif self.word() == ";":
                self.at += 1
            else:
                self.declaration(names, access)
        self.at += 1

    def declaration(self, names, access):
        line = self.line()
        while self.word() in ("template", "requires", "["):
            self.prefix()
        first = self.word()
        if first == "namespace":
            self.at += 1
            start = self.at
            self.skip_to("{")
            name = "".join(word for word, _ in self.words[start:self.at])
            self.at += 1
            self.scope((*names, *filter(None, name.split("::"))), True)
        elif first in ("class", "struct", "union"):
            self.type(names, access, line, first)
        elif first in ("enum", "using", "typedef", "static_assert", "friend", "concept", "extern"):
            self.skip_to((";", "{") if first == "friend" else ";")
            self.skip()
        else:
            self.function_or_variable(names, access, line)

    def prefix(self):
        if self.word() == "[":
            self.skip()
        elif self.word() == "template":
            self.at += 1
            self.skip_template()
        else:
            self.at += 1
            while self.word(1) == "::":
                self.at += 2
            self.skip()  # a name, or what is in parentheses
            if self.word() == "<":
                self.skip_template()

    def type(self, names, access, line, key):
        self.at += 1
        name = ""
        while self.word() not in ("{", ";", ":", ""):
            if self.word() == "<":
                self.skip_template()
            else:
                name = self.word() if self.word() != "final" else name
                self.at += 1
        self.skip_to((";", "{"))
        if self.word() == "{":
            declared = Declaration(line, "type", names, name)
            if access:
                self.found.append(declared)
            self.at += 1
            inner = len(self.found)
            self.scope((*names, name), key != "class")
            declared.body_end = self.words[self.at - 1][1]
            if not access:
                del self.found[inner:]
            self.skip_to(";")
        self.at += 1

    def function_or_variable(self, names, access, line):
        name = []
        while self.word() not in ("(", ";", "{", "=", ""):
            if self.word() in ("decltype", "alignas", "explicit") and self.word(1) == "(":
                self.at += 1
                self.skip()
            elif self.word() == "[":
                self.skip()
            elif self.word() == "<":
                self.skip_template()
            else:
                name.append(self.word())
                self.at += 1
        if self.word() != "(" or self.word(1) == "*":  # a pointer to a function
            self.skip_to(";")
            self.at += 1
            return
        called = name[-1]
        member = len(name) > 1 and name[-2] == "::"  # of a type above
        if "operator" in name:
            called = " ".join(name[name.index("operator"):]).replace(" :: ", "::")
        elif len(name) > 1 and name[-2] == "~":
            called = "~" + called
        parameters = self.parameters()
        gone, defined = self.end_of_function()
        if access and not gone and not member and not called.startswith("~"):
            self.found.append(Declaration(line, "function", names, called, parameters=parameters, defined=defined))

    def parameters(self):
        """Over (...): the words within, without defaults."""
        begin, kept = self.at, []
        self.skip()
        default, depth = False, 0
        for word, _ in self.words[begin + 1:self.at - 1]:
            default = (default or word == "=") and not (word == "," and depth == 0)
            depth += default and ((word in "([{") - (word in ")]}"))
            if not default:
                kept.append(word)
        return " ".join(kept)

    def end_of_function(self):
        """Goes over its body. Gives whether it is deleted or defaulted, and whether there is a body."""
        initialisers = gone = False
        while self.at < len(self.words):
            word = self.word()
            if word == ";":
                self.at += 1
                return gone, False
            if word == "{" and not (initialisers and re.match(r"\w|>", self.words[self.at - 1][0])):
                self.skip()
                return gone, True
            initialisers = initialisers or word == ":"
            gone = gone or word in ("default", "delete")
            self.skip()
        return gone, False


def declarations(text):
    """The public functions and types that a header declares, detail namespaces included."""
    reader = Reader(text)
    while reader.at < len(reader.words):
        reader.scope((), True)
    found = sorted(reader.found, key=lambda found: found.line)
    announced = {(str(one), one.parameters) for one in found if one.kind == "function" and not one.defined}
    return [one for one in found if not (one.defined and (str(one), one.parameters) in announced)]


def examples(lines, first=1):
    """Number of the first line, and the lines, of each example: what is indented by four spaces within a comment of ///."""
    found, current = [], None
    for number, line in enumerate(lines, start=first):
        match = EXAMPLE.match(line)
        if match is None:
            current = None
            continue
        if current is None:
            current = (number, [])
            found.append(current)
        current[1].append(" " * (len(match[1]) - 5) + match[2])
    return found


def is_fragment(example):
    """Whether it is only shown: it has ... in it."""
    return any("..." in line for line in example)


def paragraph_of(lines, line):
    """The lines around line number `line` up to blank ones."""
    begin = end = line - 1
    while begin > 0 and lines[begin - 1].strip():
        begin -= 1
    while end < len(lines) and lines[end].strip():
        end += 1
    return lines[begin:end]


def comment_of(lines, line):
    """The lines of the comment that is for line number `line`: the next one above it. A comment is for all that follows it up to the
    next one, or a blank line."""
    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    at = line - 2
    while at >= 0 and lines[at].strip() and len(lines[at]) - len(lines[at].lstrip()) >= indent:
        if lines[at].lstrip().startswith("///"):
            end = at
            while at >= 0 and lines[at].lstrip().startswith("///"):
                at -= 1
            return lines[at + 1:end + 1]
        at -= 1
    return []
