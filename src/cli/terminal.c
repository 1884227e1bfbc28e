/* terminal.c - messages, progress, signals and standard output.
 *
 * The only state of the program that is not in a settings struct lives here: the interrupt flag, a held signal, the progress line
 * and a remark that waits. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "base/number.h"

#include <stdatomic.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------------------ */

bool cli_error_is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

bool cli_colours(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) == 1 && !(no_color && no_color[0]) && term && term[0] && strcmp(term, "dumb") != 0;
}

static bool is_control(char c) { return (unsigned char)c < ' ' || c == 0x7f; }

static void say(const cli_settings *s, const char *format, va_list args)
{
    cli_progress_end();
    fflush(stdout); /* what was printed comes first, where both go to one terminal */
    char sentence[1024];
    vsnprintf(sentence, sizeof sentence, format, args);
    for (char *c = sentence; *c; c++) {
        if (is_control(*c)) *c = '?'; /* one line, and nothing from a file that steers the terminal */
    }
    fprintf(stderr, "pinch%s%s: %s\n", s->command ? " " : "", s->command ? s->command : "", sentence);
}

int cli_fail(const cli_settings *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(s, format, args);
    va_end(args);
    return CLI_FAILED;
}

int cli_misuse(const cli_settings *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(s, format, args);
    va_end(args);
    return CLI_MISUSED;
}

int cli_error(const cli_settings *s, const pinch_error *err)
{
    if (err->status == PINCH_ABORTED) {
        cli_progress_end();
        return CLI_INTERRUPTED;
    }
    return cli_fail(s, "%s", err->message);
}

void cli_remark(const cli_settings *s, const char *format, ...)
{
    if (!s->verbose && !cli_error_is_terminal()) return;
    const bool grey = cli_colours(STDERR_FILENO);
    va_list args;
    cli_progress_end();
    fflush(stdout);
    if (grey) fputs("\033[2m", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(grey ? "\033[0m\n" : "\n", stderr);
}

static struct {
    bool begun;       /* a model is: its line must not be broken */
    char remark[192]; /* the last that came meanwhile; "": none */
} writing;

void cli_log(void *settings, pinch_log_level level, const char *message)
{
    const cli_settings *s = settings;
    if (level == PINCH_LOG_WARNING) cli_fail(s, "warning: %s", message);
    else if (writing.begun) snprintf(writing.remark, sizeof writing.remark, "%s", message);
    else cli_remark(s, "%s", message);
}

void cli_text_begins(void) { writing.begun = true; }

void cli_text_ended(const cli_settings *s)
{
    if (writing.remark[0]) cli_remark(s, "(%s)", writing.remark);
    writing.begun = false;
    writing.remark[0] = 0;
}

/* ---- progress -------------------------------------------------------------------------------------------- */

static struct {
    double started, shown; /* seconds; 0: no line is under way */
    const char *what;
    bool visible;
} line;

enum { PROGRESS_WIDTH = 60 };

void cli_progress(void *settings, const char *what, uint64_t done, uint64_t total)
{
    (void)settings;
    if (!cli_error_is_terminal() || total == 0) return;
    const double now = pn_now();
    if (line.what != what) {
        cli_progress_end();
        line.what = what;
        line.started = now;
    }
    if (done >= total) {
        cli_progress_end();
        return;
    }
    /* short work needs no line, and a line needs no more than ten pictures a second */
    if (now - line.started < 0.3 || now - line.shown < 0.1) return;
    line.shown = now;
    line.visible = true;
    fprintf(stderr, "\r%s %3d %%", what, (int)(done * 100 / total));
    fflush(stderr);
}

void cli_progress_end(void)
{
    if (line.visible) fprintf(stderr, "\r%*s\r", PROGRESS_WIDTH, "");
    line.visible = false;
    line.what = NULL;
}

/* ---- signals ---------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    if (interrupted) _exit(CLI_INTERRUPTED);
    interrupted = 1;
}

/* A page of a mapped model that can no longer be read: the file shrank, or its medium failed. */
static void on_lost_page(int signal)
{
    static const char sentence[] = "pinch: the model file was cut short or became unreadable while it was in use; with --no-mmap it is read into memory instead\n";
    (void)signal;
    static atomic_flag said = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&said)) pause(); /* threads that lose the same page at once: one speaks, and ends them all */
    ssize_t n = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)n;
    _exit(CLI_FAILED);
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: a read of the keyboard ends */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_lost_page;
    sigaction(SIGBUS, &action, NULL);
}

bool cli_interrupted(void *unused)
{
    (void)unused;
    return interrupted != 0;
}

void cli_forget_interrupt(void) { interrupted = 0; }

static volatile sig_atomic_t held;

static void on_held(int signal) { held = signal; }

static void change_handlers(void (*from)(int), void (*to)(int))
{
    static const int signals[] = {SIGTSTP, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < PN_COUNT(signals); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) != 0 || action.sa_handler != from) continue; /* ignored: so it stays */
        action = (struct sigaction){.sa_handler = to};
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, NULL);
    }
}

void cli_hold_signals(void) { change_handlers(SIG_DFL, on_held); }
int cli_held_signal(void) { return held; }

void cli_release_signals(void)
{
    const int signal = held;
    held = 0;
    change_handlers(on_held, SIG_DFL);
    if (signal) raise(signal);
}

/* ---- standard output ---------------------------------------------------------------------------------------- */

void cli_write(const void *bytes, size_t n) { fwrite(bytes, 1, n, stdout); }

void cli_write_generated(const char *text, size_t n)
{
    if (isatty(STDOUT_FILENO) != 1) {
        cli_write(text, n);
        return;
    }
    for (size_t i = 0; i < n; i++) putchar(is_control(text[i]) && text[i] != '\n' && text[i] != '\t' ? '?' : text[i]);
}

void cli_write_safe(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) putchar(is_control(text[i]) ? '?' : text[i]);
}

void cli_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

int cli_flush(const cli_settings *s)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_DONE;
    return cli_fail(s, "cannot write to standard output: %s", errno ? strerror(errno) : "an earlier write failed");
}

int cli_write_json(const cli_settings *s, pn_json_writer *w)
{
    const bool failed = w->failed;
    if (!failed) {
        cli_write(w->data, w->n);
        cli_write("\n", 1);
    }
    pn_json_writer_free(w);
    return failed ? cli_fail(s, "out of memory for the JSON output") : cli_flush(s);
}

int cli_give_text(const cli_settings *s, const char *text, size_t n, bool any_bytes)
{
    if (!s->json) {
        cli_write(text, n);
        return cli_flush(s);
    }
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "text");
    pn_json_string(&w, text, n);
    if (any_bytes) {
        pn_json_put_key(&w, "text_b64");
        pn_json_base64(&w, text, n);
    }
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

const char *cli_fixed(char buffer[64], double v, int decimals)
{
    char text[512];
    if (!(v > -1e30 && v < 1e30)) return v != v ? "nan" : v > 0 ? "inf" : "-inf";
    const size_t n = pn_format_fixed(text, v, decimals);
    snprintf(buffer, 64, "%.*s", (int)n, text);
    return buffer;
}

const char *cli_bytes(char buffer[64], uint64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double v = (double)n;
    for (; v >= 1024 && unit + 1 < PN_COUNT(units); unit++) v /= 1024;
    char number[64];
    snprintf(buffer, 64, "%.40s %s", cli_fixed(number, v, unit > 0 && v < 100 ? 1 : 0), units[unit]);
    return buffer;
}
