# SPDX-License-Identifier: Apache-2.0
# scripts/site: README, docs/ and the manual become pages; each link leads somewhere, and none takes in a file of another site.
. "$CT_SOURCE/tests/e2e/lib.sh"
for program in mkdocs mandoc; do
    command -v $program >/dev/null || { echo "skipped: $program is not there (apt-get install $program)"; exit 77; }
done
site=$work/site
make() {
    out=$(python3 "$CT_SOURCE/packaging/site/make.py" "$1" "$CT_BUILD/packaging/man" "$site" 2>&1) && code=0 || code=$?
}

make "$CT_SOURCE"
expect "the site is made" matches "$code $out" "^0 .*pages, each link followed"
for guide in "$CT_SOURCE"/docs/guide/[!R]*.md; do
    expect "its start leads to $(basename "$guide")" grep -q "href=\"docs/guide/$(basename "$guide" .md).html\"" "$site/index.html"
done
expect "a page of the manual names the others" grep -q '<a class="Xr" href="ctrun-environment.7.html">' "$site/man/ctrun.1.html"
expect "a family's page names its functions" grep -q '<a class="Xr" href="ct_all_reduce.3.html">' "$site/man/ct-collectives.3.html"
expect "a program stands in its guide as code" grep -q 'class="language-c">#include' "$site/docs/guide/first-program.html"

# What goes wrong is said with the page and the link.
copy=$work/copy
mkdir "$copy" && ln -s "$CT_SOURCE"/* "$copy" && rm "$copy/docs" && cp -r "$CT_SOURCE/docs" "$copy"
spoil() { # PAGE TEXT WORDS...: a site with TEXT at the end of PAGE is refused with WORDS
    cp "$copy/$1" page
    printf '\n%s\n' "$2" >>"$copy/$1"
    make "$copy"
    cp page "$copy/$1"
    expect "$3" has "$code $out" "$4"
}
spoil docs/mpi.md '[x](nowhere.c)' "a link to no file is found" "1 docs/mpi.md: nowhere.c is no file"
spoil docs/mpi.md '[x](nowhere.md)' "so is one to no page" "1 docs/mpi.md: nowhere.md is no file"
spoil docs/mpi.md '[x](gpu.md#nowhere) <img src="https://example.org/x.png">' "and one to no place of a page, and a picture from elsewhere" "1 docs/mpi.html: there is no place gpu.html#nowhere
docs/mpi.html takes in https://example.org/x.png"
echo '# Lost' >"$copy/docs/lost.md"
make "$copy"
expect "and a page that nothing leads to" is "$code $out" "1 neither README.md nor docs/guide/README.md names docs/lost.md"
finish
