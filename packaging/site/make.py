# SPDX-License-Identifier: Apache-2.0
"""make.py SOURCE MAN SITE: a site of the README, docs/, the examples and the manual, in the folder SITE.

The pages keep their places in the repository, so the links between them stay as they are.  What mkdocs
does not know is made into pages in SITE.pages first: the manual (mandoc), a source file that a page links
to (shown as code), a folder of docs/figures (its pictures and transcripts).  The order is the README's
and docs/guide/README.md's own; a page that neither names is an error.  At the end each link of the site
is followed.  Pages take nothing from elsewhere: no fonts, no scripts.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

source, manual, site = (pathlib.Path(word).resolve() for word in sys.argv[1:])
pages, settings = (site.with_name(site.name + ending) for ending in (".pages", ".yml"))
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
HEADING = re.compile(r"^# (.*)", re.M)


def write(path, text):
    path = pages / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path.relative_to(pages))


def title(path):
    return HEADING.search((source / path).read_text()).group(1).replace("`", "")


def code_page(path):
    """A file of the repository as code, beside the place where it lies."""
    text = (source / path).read_text()
    return write(f"{path}.md", f"# {path}\n\n" + "".join(f"    {line}\n" for line in text.splitlines()))


def stage(path):
    """A page of the repository, and those that it links to; a file that is none becomes one."""
    def follow(link):
        name = link[2]
        target = pathlib.Path(os.path.normpath(path.parent / name))
        if ":" in name:
            return link[0]
        if not (source / target).is_file():
            sys.exit(f"{path}: {name} is no file")
        if target.suffix == ".md":
            stage(target)
            return link[0]
        if target.suffix in (".svg", ".png"):
            copy(target)
            return link[0]
        code_page(target)
        return f"{link[1]}{name}.md{link[3]}"

    if (pages / path).exists():
        return str(path)
    text = (source / path).read_text()
    write(path, text)  # so that pages may name each other
    text = LINK.sub(follow, text)
    # Python's Markdown takes one word behind the fence, and wants an empty line before a list.
    text = re.sub(r"^```(\w+) .*$", r"```\1", text, flags=re.M)
    return write(path, re.sub(r"(\n(?!- |  |\n)[^\n]+\n)(?=- )", r"\1\n", text))


def copy(path):
    (pages / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / path, pages / path)


def heading(found):
    """A heading of mandoc's HTML as Markdown."""
    level, place, text = found.groups()
    return f"\n\n{'#' * (int(level) + 1)} {' '.join(text.split())} {{#{place}}}\n\n"


def manual_page(file, names):
    """mandoc's HTML; its headings as Markdown, so that mkdocs has them in its tables of contents and its search."""
    text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", file],
                          check=True, capture_output=True, text=True).stdout
    text = re.sub(r'<table class="(?:head|foot)">.*?</table>', "", text, flags=re.S)
    text = re.sub(r'</?section[^>]*>|<div class="manual-text">|</div>\s*\Z', "", text)
    text = re.sub(r'<h([12])[^>]*?id="([^"]*)"[^>]*>(?:<a[^>]*>)?(.*?)(?:</a>)?</h\1>', heading, text, flags=re.S)

    def refer(link):
        name = urllib.parse.unquote(link[1])
        return f'<a class="Xr" href="{names[name]}">{link[2]}</a>' if name in names else link[2]

    text = re.sub(r'<a class="Xr" href="([^"]*)\.html">(.*?)</a>', refer, text, flags=re.S)
    name, section = file.stem, file.suffix[1:]
    return write(f"man/{file.name}.md", f"# {name}({section})\n\n{text}\n")


def manual_pages():
    files = [manual / page for page in ("ctrun.1", "ctctl.1", "ctrun.ini.5", "ctrun-environment.7")]
    files += sorted((manual / "man3").glob("*.3"))
    names = {file.name: f"{file.name}.html" for file in files}
    made = {file.stem: {f"{file.stem}({file.suffix[1:]})": manual_page(file, names)} for file in files}
    # The pages of ct.h's sections lead to those of its functions, which would be too many for a menu.
    return [page for name, page in made.items() if not name.startswith("ct_") or name == "ct_cuda"]


def figures(folder):
    """What lies in a folder of docs/figures: pictures, transcripts of terminals, and pages."""
    text = f"# {folder.name.replace('-', ' ').capitalize()}\n"
    for file in sorted((source / folder).iterdir()):
        if file.suffix in (".svg", ".png"):
            copy(folder / file.name)
            text += f"\n## {file.stem}\n\n![{file.stem}]({folder.name}/{file.name})\n"
        elif file.suffix == ".txt":
            code_page(folder / file.name)
            text += f"\n- [{file.name}]({folder.name}/{file.name}.md)\n"
        elif file.suffix == ".md":
            stage(folder / file.name)
            text += f"\n- [{file.name}]({folder.name}/{file.name})\n"
    return write(folder.with_suffix(".pictures.md"), text)


def linked(path, text):
    """The pages that a text names, in its order."""
    found = (os.path.normpath(path.parent / link[2]) for link in LINK.finditer(text) if link[2].endswith(".md"))
    return list(dict.fromkeys(map(pathlib.Path, found)))


def navigation():
    readme, guides, examples = map(pathlib.Path, ("README.md", "docs/guide/README.md", "examples/README.md"))
    table = (source / readme).read_text().partition("\n## Documentation\n")[2]
    for_users, _, rest = table.partition("\n| **Contribute** |")
    for_users, for_contributors = linked(readme, for_users), linked(readme, rest.partition("\n")[0])
    in_guides = linked(guides, (source / guides).read_text())
    pictures = [path.relative_to(source) for path in sorted((source / "docs/figures").iterdir())]
    tables = sorted(path.relative_to(source) for path in (source / "docs/figures").rglob("*.md"))
    named = {*for_users, *for_contributors, *in_guides, *tables, guides}
    lost = [str(path) for path in sorted(p.relative_to(source) for p in (source / "docs").rglob("*.md"))
            if path not in named and path.parts[1] != "upstream"]
    if lost:
        sys.exit(f"neither README.md nor docs/guide/README.md names {', '.join(lost)}")

    def entries(paths):
        return [{title(path): stage(path)} for path in paths]

    return [{"Start": stage(readme)},
            {"Guides": entries([guides, *(path for path in in_guides if path.parent == guides.parent)])},
            {"Examples": stage(examples)},
            {"For users": entries(path for path in for_users if path.parent not in (guides.parent, examples.parent))},
            {"Manual": manual_pages()},
            {"How it works": entries(for_contributors)},
            {"Figures": entries(tables) + [{path.name.replace("-", " ").capitalize(): figures(path)}
                                           for path in pictures if (source / path).is_dir()]}]


class Page(html.parser.HTMLParser):
    """The links of a page, the files that it takes in, and the places in it."""

    def __init__(self, file):
        super().__init__()
        self.places, self.links, self.parts = {""}, [], []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        for key in "href", "src":
            if key in attributes:
                (self.links if tag == "a" else self.parts).append(attributes[key])


def dead_links():
    found = {file: Page(file) for file in site.rglob("*.html")}
    for file, page in found.items():
        for link in page.links + page.parts:
            url = urllib.parse.urlsplit(link)
            target = (file.parent / urllib.parse.unquote(url.path)).resolve() if url.path else file
            if url.scheme or url.netloc:
                if link in page.parts:
                    yield f"{file.relative_to(site)} takes in {link}"
            elif not target.is_file():
                yield f"{file.relative_to(site)}: there is no {link}"
            elif target in found and urllib.parse.unquote(url.fragment) not in found[target].places:
                yield f"{file.relative_to(site)}: there is no place {link}"


shutil.rmtree(pages, ignore_errors=True)
nav = navigation()
shutil.copy(source / "packaging/site/site.css", pages)
config = {"site_name": "ctrun", "docs_dir": str(pages), "site_dir": str(site), "use_directory_urls": False,
          "theme": {"name": "mkdocs", "highlightjs": False, "navigation_depth": 2}, "extra_css": ["site.css"],
          "markdown_extensions": ["attr_list"], "nav": nav}
settings.write_text(json.dumps(config, indent=1))  # YAML, too
made = subprocess.run(["mkdocs", "build", "--strict", "--clean", "-f", settings], capture_output=True, text=True)
if made.returncode:
    sys.exit(made.stderr.strip())
(site / "404.html").unlink()  # it names its parts from the root of a server
dead = list(dead_links())
if dead:
    sys.exit("\n".join(dead))
print(f"{site}/index.html: {len(list(site.rglob('*.html')))} pages, each link followed")
