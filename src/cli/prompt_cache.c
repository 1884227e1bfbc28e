/* prompt_cache.c - `--prompt-cache FILE`: the state after a prompt, kept between runs. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool read_file(void *user, void *bytes, size_t n) { return n == 0 || fread(bytes, 1, n, user) == n; }
static bool write_file(void *user, const void *bytes, size_t n) { return n == 0 || fwrite(bytes, 1, n, user) == n; }

/* A file that is missing or does not fit begins anew, with a word on why. */
static void load(const cli_settings *s, pinch_session *session)
{
    pinch_error err = {PINCH_OK, ""};
    FILE *f = fopen(s->prompt_cache, "rb");
    if (!f) {
        if (errno != ENOENT) cli_remark(s, "%s: cannot be opened (%s); the prompt is computed", s->prompt_cache, strerror(errno));
        return;
    }
    if (pinch_session_load(session, 0, read_file, f, &err)) cli_remark(s, "%s: %s; the prompt is computed", s->prompt_cache, err.message);
    fclose(f);
}

/* Written beside and renamed, so that a file is whole or the old one. */
static pinch_status store(const cli_settings *s, const pinch_session *session, pinch_error *err)
{
    const size_t n = strlen(s->prompt_cache) + 32;
    char *beside = malloc(n);
    if (!beside) return pn_fail_memory(err, "a file's name", n);
    snprintf(beside, n, "%s.%ld", s->prompt_cache, (long)getpid());
    FILE *f = fopen(beside, "wb");
    pinch_status st = f ? pinch_session_save(session, 0, write_file, f, err) : pn_fail_system(err, beside, "cannot be written", errno);
    if (f && fclose(f) && !st) st = pn_fail_system(err, beside, "cannot be written", errno);
    if (!st && rename(beside, s->prompt_cache)) st = pn_fail_system(err, s->prompt_cache, "cannot be replaced", errno);
    if (st && f) remove(beside);
    free(beside);
    return st;
}

/* What is kept ends before the prompt's last token: the same prompt then computes that one alone. */
pinch_status cli_feed_prompt(const cli_settings *s, pinch_session *session, const cli_ids *prompt, pinch_error *err)
{
    if (!s->prompt_cache) return pinch_session_feed(session, 0, prompt->data, prompt->n, err);
    size_t reused = 0;
    load(s, session);
    pinch_status st = pinch_session_sync(session, 0, prompt->data, prompt->n, &reused, err);
    if (st || reused + 1 >= prompt->n) return st;
    st = pinch_session_truncate(session, 0, (int32_t)prompt->n - 1, err);
    if (!st) st = store(s, session, err);
    return st ? st : pinch_session_feed(session, 0, prompt->data + prompt->n - 1, 1, err);
}
