# SPDX-License-Identifier: Apache-2.0
"""What CI systems make of the files and lines that they are given. Each is written from the consumer's own description
or source, re-told, and knows nothing of sparktrace."""

import glob
import html.parser
import json
import os
import re

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.venv")

# ---- GitHub's runner ------------------------------------------------------------------------------------------------

REGISTERED = {
    "error", "warning", "notice", "debug", "group", "endgroup", "add-mask", "set-env", "set-output", "save-state", "add-path",
    "add-matcher", "remove-matcher", "stop-commands", "echo",
}
# In the order in which the runner undoes them: the per cent sign last.
MESSAGE = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
OLD = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))


def undo(text, table):
    for written, sign in table:
        text = text.replace(written, sign)
    return text


def named(head, separator, table):
    """(name, properties) of the part of a command before its data; None for a name that the runner does not know."""
    name, _, rest = head.partition(" ")
    if name.lower() not in REGISTERED:
        return None
    properties = {}
    for pair in filter(None, rest.strip().split(separator)):
        key, _, value = pair.partition("=")
        if key and value:
            properties[key.lower()] = undo(value, table)
    return name.lower(), properties


def command_of(line):
    """The command that a line of a step's output is, as (name, properties, data), or None.

    The way of today begins the line, blanks aside; the old one, ##[name]data, may stand anywhere in it."""
    line = line.lstrip()
    if line.startswith("::") and "::" in line[2:]:
        head, _, data = line[2:].partition("::")
        found = named(head, ",", PROPERTY)
        if found:
            return *found, undo(data, MESSAGE)
    if "##[" in line and "]" in line[line.index("##[") :]:
        head, _, data = line[line.index("##[") + 3 :].partition("]")
        found = named(head, ";", OLD)
        if found:
            return *found, undo(data, OLD)
    return None


def commands(*streams):
    """All that the runner obeys; it reads lines of both streams, which end with CR, LF or both."""
    lines = [line for stream in streams for line in re.split(r"\r\n|\r|\n", stream)]
    return [command for command in map(command_of, lines) if command]


# ---- JUnit ----------------------------------------------------------------------------------------------------------


def schemas():
    import xmlschema

    return [xmlschema.XMLSchema(path) for path in sorted(glob.glob(VENV + "/junit-schema/*.xsd"))]


def junit(path):
    """{(class, name): (status, body)} as GitLab shows it: the first of cases alike, `failure` before `error` before
    `skipped`; and what is wrong: names there twice, counts of suites."""
    import xml.etree.ElementTree

    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except xml.etree.ElementTree.ParseError as error:
        return {}, [f"no XML: {error}"]
    cases, wrong = {}, []
    for case in root.iter("testcase"):
        status, text = "success", case.findtext("system-out", "")
        for name in ("failure", "error", "skipped"):
            found = case.find(name)
            if found is not None:
                status, text = name, found.text or ""
                wrong += [] if found.get("message") else [f"{case.get('name')}: no message"]
                break
        key = case.get("classname"), case.get("name")
        wrong += [f"{key} is there twice"] if key in cases else []
        cases.setdefault(key, (status, text))
    for suite in [root, *root.iter("testsuite")]:
        for attribute, tag in {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            seen = sum(1 for _ in suite.iter(tag))
            if suite.get(attribute, str(seen)) != str(seen):
                wrong.append(f"{suite.tag}: {attribute}={suite.get(attribute)}, but there are {seen}")
    return cases, wrong


# ---- GitHub's Markdown ----------------------------------------------------------------------------------------------


class Tags(html.parser.HTMLParser):
    """Tags and text of raw HTML."""

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text, self.wrong = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.wrong += [f"attribute {name}" for name, _ in attrs if name != "open"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.wrong.append("comment")

    def unknown_decl(self, data):
        self.wrong.append("declaration")


class Summary:
    """A job summary: its headings, tables (rows of texts of cells), items of lists, the folded part; and in `wrong` all
    markup that only a name can have brought in."""

    INLINE = {"text", "code_inline", "softbreak"}
    BLOCK = {"heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"}
    HTML = {"details", "summary", "p", "ul", "li"}

    def __init__(self, text):
        from markdown_it import MarkdownIt

        self.headings, self.tables, self.items, self.wrong, self.folded = [], [], [], [], Tags()
        tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
        for i, token in enumerate(tokens):
            kind = token.type.removesuffix("_open").removesuffix("_close")
            if token.type == "inline":
                self.take(tokens[i - 1].type, tokens[i - 2].type, self.plain(token))
            elif token.type == "html_block":
                self.folded.feed(token.content)
            elif kind not in self.BLOCK:
                self.wrong.append(token.type)
            elif token.type == "table_open":
                self.tables.append([])
            elif token.type == "tr_open":
                self.tables[-1].append([])
        self.folded.close()
        self.wrong += self.folded.wrong + [f"<{tag}>" for tag in set(self.folded.tags) - self.HTML]
        self.wrong += [f"<{tag}> is open" for tag in self.folded.open]

    def plain(self, inline):
        for child in inline.children:
            name = child.type != "code_inline" or re.fullmatch(r"\w+", child.content)
            self.wrong += [] if child.type in self.INLINE and name else [child.type]
        return "".join(child.content for child in inline.children)

    def take(self, around, before, text):
        if around == "heading_open":
            self.headings.append(text)
        elif around in ("th_open", "td_open"):
            self.tables[-1][-1].append(text)
        elif before == "list_item_open":
            self.items.append(text)


# ---- github-action-benchmark ----------------------------------------------------------------------------------------


def no_number(word):
    raise ValueError(word + " is no JSON")


def benchmark(path):
    """{name: (value, unit, how far it may be off or None)} of customSmallerIsBetter; ValueError where the action, or its
    page of charts, cannot use it."""
    with open(path, encoding="utf-8") as file:
        entries = json.load(file, parse_constant=no_number)
    if not isinstance(entries, list) or not entries:
        raise ValueError("no array with a result in it")
    found = {}
    for entry in entries:
        texts = [entry["name"], entry["unit"], entry.get("range", ""), entry.get("extra", "")]
        if not all(isinstance(text, str) for text in texts) or isinstance(entry["value"], bool):
            raise ValueError(f"types of {entry}")
        if not isinstance(entry["value"], (int, float)) or set(entry) - {"name", "unit", "value", "range", "extra"}:
            raise ValueError(f"members of {entry}")
        if entry["name"] in found:
            raise ValueError(f"{entry['name']} is there twice")
        off = re.search(r"(\+-|±)\s*(\d.+)", texts[2])
        found[entry["name"]] = entry["value"], entry["unit"], off and float(off.group(2))
    return found
