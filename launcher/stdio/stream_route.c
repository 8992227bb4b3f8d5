/* SPDX-License-Identifier: Apache-2.0 */
/* stream_route.c - see stream_route.h.
 *
 * --redirects and --tee decide first, then who is to be shown at all, then whether a
 * prefix is wanted.  What nobody asked to see or to change is inherited: the worker
 * writes for itself, at no cost and into what may be a real terminal. */
#include "launcher/stdio/stream_route.h"

#include <string.h>
#include <unistd.h>

static const char *tee_prefix(const struct options *options)
{
    const char *template = options->log_line_prefix_template;

    if (template && *template)
        return template;
    if (!strcmp(options->prefix, "auto"))
        return "[${role_name}${local_rank}]:";
    return !strcmp(options->prefix, "none") ? "" : options->prefix;
}

struct route route_of(const struct options *options, const struct origin *origin)
{
    const int bit = origin->to == STDOUT_FILENO ? 1 : 2;
    const int redirect =
        origin->files && stream_spec_of(&options->redirects, origin->local_rank) & bit;
    const int tee = origin->files && stream_spec_of(&options->tee, origin->local_rank) & bit;
    const int listed =
        rank_filter_has(options->local_ranks_filter, origin->local_rank)
        && (!options->show || ranks_have(options->show, origin->rank, origin->world));

    if (tee && listed)
        return (struct route){
            .file = 1, .through = 1, .shown = 1, .tee = 1, .prefix = tee_prefix(options)
        };
    if (tee || redirect)
        return (struct route){ .file = 1 };
    if (!listed && origin->to == STDERR_FILENO) /* its last words may still be wanted */
        return (struct route){ .through = 1 };
    if (!listed)
        return (struct route){ .nowhere = 1 };
    if (!strcmp(options->prefix, "none") || !*options->prefix)
        return (struct route){ 0 };
    if (strcmp(options->prefix, "auto") != 0)
        return (struct route){ .through = 1, .shown = 1, .prefix = options->prefix };
    if (origin->terminal && origin->world > 1)
        return (struct route){ .through = 1, .shown = 1, .by_rank = 1 };
    return (struct route){ 0 };
}
