/* line.c - reads lines from a person or a pipe; a small editor where the terminal can do it.
 *
 * Knows the control sequences that every terminal since the VT100 has, bracketed paste, and UTF-8. The terminal is raw, and marks what is pasted,
 * only while a line is read. */
#include "cli/cli.h"

#include "base/utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { HISTORY = 100, LONGEST = 1 << 20 };

struct cli_editor {
    char *text; /* the line, a NUL behind it */
    size_t n, capacity, cursor;
    char *history[HISTORY];
    size_t n_history, shown; /* shown == n_history: the line that is being written */
    char *kept;              /* that line, while history is shown */
    bool editing;            /* a terminal that can */
    struct termios cooked;
    const char *prompt;
};

cli_editor *cli_editor_open(void)
{
    cli_editor *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->capacity = 256;
    e->text = malloc(e->capacity);
    if (!e->text) {
        free(e);
        return NULL;
    }
    const char *term = getenv("TERM");
    e->editing = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term && term[0] && strcmp(term, "dumb") != 0 && tcgetattr(STDIN_FILENO, &e->cooked) == 0;
    return e;
}

void cli_editor_close(cli_editor *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->n_history; i++) free(e->history[i]);
    free(e->kept);
    free(e->text);
    free(e);
}

/* ---- the text ---------------------------------------------------------------------------------------------- */

static bool insert(cli_editor *e, const char *bytes, size_t n)
{
    if (e->n + n > LONGEST) return false;
    if (e->n + n + 1 > e->capacity) {
        char *grown = realloc(e->text, (e->n + n + 1) * 2);
        if (!grown) return false;
        e->text = grown;
        e->capacity = (e->n + n + 1) * 2;
    }
    memmove(e->text + e->cursor + n, e->text + e->cursor, e->n - e->cursor);
    memcpy(e->text + e->cursor, bytes, n);
    e->n += n;
    e->cursor += n;
    return true;
}

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static size_t before(const cli_editor *e, size_t at)
{
    while (at > 0 && is_continuation(e->text[--at])) {}
    return at;
}
static size_t after(const cli_editor *e, size_t at)
{
    if (at < e->n) at++;
    while (at < e->n && is_continuation(e->text[at])) at++;
    return at;
}

static void erase(cli_editor *e, size_t from, size_t to)
{
    memmove(e->text + from, e->text + to, e->n - to);
    e->n -= to - from;
    e->cursor = from;
}

static void replace(cli_editor *e, const char *text)
{
    e->n = e->cursor = 0;
    if (text) insert(e, text, strlen(text));
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

static size_t word_before(const cli_editor *e)
{
    size_t at = e->cursor;
    while (at > 0 && is_space(e->text[at - 1])) at--;
    while (at > 0 && !is_space(e->text[at - 1])) at--;
    return at;
}

/* ---- the screen -------------------------------------------------------------------------------------------- */

/* Columns that a character takes, roughly: wide East Asian scripts and emoji take two, combining marks none. */
static size_t columns_of(uint32_t c)
{
    static const struct { uint32_t first, last; } wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    if (c == 0x200d || (c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f)) return 0;
    for (size_t i = 0; i < PN_COUNT(wide); i++) {
        if (c >= wide[i].first && c <= wide[i].last) return 2;
    }
    return 1;
}

static size_t width(const char *text, size_t n)
{
    size_t columns = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        if (text[at] == '\033') { /* a colour of the prompt */
            while (at < n && text[at++] != 'm') {}
            continue;
        }
        at += pn_utf8_decode(text + at, n - at, &c);
        columns += columns_of(c);
    }
    return columns;
}

static size_t screen_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

/* A pasted newline is shown as a mark, or with `between` as that; a tab as a space. */
static void show(const char *text, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') fputs(between, stdout);
        else putchar(text[i] == '\t' ? ' ' : text[i]);
    }
}

/* One row: where the line is longer, a part around the cursor is shown. */
static void draw(const cli_editor *e)
{
    const size_t room = screen_columns() - 1, prompt = width(e->prompt, strlen(e->prompt));
    const size_t space = room > prompt + 4 ? room - prompt : 4;
    size_t from = e->cursor, to = e->cursor, left = 0;
    while (from > 0) {
        const size_t at = before(e, from), columns = left + width(e->text + at, from - at);
        if (columns > space) break;
        left = columns;
        from = at;
    }
    for (size_t columns = left; to < e->n;) {
        const size_t at = after(e, to);
        columns += width(e->text + to, at - to);
        if (columns > space) break;
        to = at;
    }
    printf("\r%s", e->prompt);
    show(e->text + from, to - from, "\xe2\x86\xb5");
    fputs("\033[K\r", stdout);
    if (prompt + left) printf("\033[%zuC", prompt + left);
    fflush(stdout);
}

/* A finished line; one that was pasted in several, as several. */
static void draw_finished(cli_editor *e)
{
    char between[96];
    e->cursor = e->n;
    draw(e);
    if (!memchr(e->text, '\n', e->n)) return;
    const size_t prompt = width(e->prompt, strlen(e->prompt));
    snprintf(between, sizeof between, "\033[K\n%*s", prompt < 80 ? (int)prompt : 80, "");
    printf("\r%s", e->prompt);
    show(e->text, e->n, between);
    fputs("\033[K", stdout);
}

/* ---- history ----------------------------------------------------------------------------------------------- */

static void remember(cli_editor *e)
{
    e->text[e->n] = 0;
    if (e->n == 0 || strlen(e->text) != e->n) return;
    if (e->n_history > 0 && !strcmp(e->history[e->n_history - 1], e->text)) return;
    char *copy = strdup(e->text);
    if (!copy) return;
    if (e->n_history == HISTORY) {
        free(e->history[0]);
        memmove(e->history, e->history + 1, (HISTORY - 1) * sizeof *e->history);
        e->n_history--;
    }
    e->history[e->n_history++] = copy;
}

static void show_history(cli_editor *e, size_t i)
{
    if (e->shown == e->n_history) {
        free(e->kept);
        e->text[e->n] = 0;
        e->kept = strdup(e->text);
    }
    e->shown = i;
    replace(e, i == e->n_history ? e->kept : e->history[i]);
}

/* ---- keys -------------------------------------------------------------------------------------------------- */

typedef enum key {
    KEY_NONE = 256, KEY_UP, KEY_DOWN, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END, KEY_DELETE, KEY_PASTE, KEY_HELD, KEY_CLOSED
} key;

static int read_byte(void)
{
    unsigned char c;
    ssize_t n;
    do {
        if (cli_held_signal()) return KEY_HELD;
        n = read(STDIN_FILENO, &c, 1);
    } while (n < 0 && errno == EINTR && !cli_interrupted(NULL));
    return n == 1 ? c : KEY_CLOSED;
}

/* ESC [ or ESC O, then parameters, then a final byte. */
static int read_escape(void)
{
    static const struct { char final; int key; } finals[] = {{'A', KEY_UP}, {'B', KEY_DOWN}, {'C', KEY_RIGHT}, {'D', KEY_LEFT}, {'H', KEY_HOME}, {'F', KEY_END}};
    static const struct { int number, key; } numbers[] = {{1, KEY_HOME}, {3, KEY_DELETE}, {4, KEY_END}, {7, KEY_HOME}, {8, KEY_END}, {200, KEY_PASTE}};
    int c = read_byte(), number = 0;
    if (c != '[' && c != 'O') return KEY_NONE;
    for (c = read_byte(); c >= '0' && c <= '?'; c = read_byte()) {
        if (c >= '0' && c <= '9' && number < 100) number = number * 10 + c - '0';
    }
    for (size_t i = 0; i < PN_COUNT(finals); i++) {
        if (c == finals[i].final) return finals[i].key;
    }
    for (size_t i = 0; i < PN_COUNT(numbers) && c == '~'; i++) {
        if (number == numbers[i].number) return numbers[i].key;
    }
    return KEY_NONE;
}

enum { CTRL_A = 1, CTRL_B = 2, CTRL_C = 3, CTRL_D = 4, CTRL_E = 5, CTRL_F = 6, CTRL_H = 8, CTRL_K = 11, CTRL_L = 12, CTRL_N = 14, CTRL_P = 16, CTRL_U = 21, CTRL_W = 23, CTRL_Z = 26, ESCAPE = 27, BACKSPACE = 127 };

static void edit(cli_editor *e, int c)
{
    switch (c) {
    case CTRL_A: case KEY_HOME: e->cursor = 0; break;
    case CTRL_E: case KEY_END: e->cursor = e->n; break;
    case CTRL_B: case KEY_LEFT: e->cursor = before(e, e->cursor); break;
    case CTRL_F: case KEY_RIGHT: e->cursor = after(e, e->cursor); break;
    case CTRL_H: case BACKSPACE: erase(e, before(e, e->cursor), e->cursor); break;
    case CTRL_D: case KEY_DELETE: erase(e, e->cursor, after(e, e->cursor)); break;
    case CTRL_K: erase(e, e->cursor, e->n); break;
    case CTRL_U: erase(e, 0, e->cursor); break;
    case CTRL_W: erase(e, word_before(e), e->cursor); break;
    case CTRL_P: case KEY_UP: if (e->shown > 0) show_history(e, e->shown - 1); break;
    case CTRL_N: case KEY_DOWN: if (e->shown < e->n_history) show_history(e, e->shown + 1); break;
    case CTRL_L: fputs("\033[H\033[2J", stdout); break;
    default: break;
    }
}

/* ---- pasted text ------------------------------------------------------------------------------------------- */

typedef struct paste {
    cli_editor *e;
    char block[1024];
    size_t n;
    bool refused; /* the line is as long as lines may be */
} paste;

static void put_block(paste *p)
{
    if (!insert(p->e, p->block, p->n)) p->refused = true;
    p->n = 0;
}

/* Newlines of any kind are one; of other control characters only tabs stay. */
static void put(paste *p, int c, int previous)
{
    if ((c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == BACKSPACE || (c == '\n' && previous == '\r')) return;
    p->block[p->n++] = c == '\r' ? '\n' : (char)(unsigned char)c;
    if (p->n == sizeof p->block) put_block(p);
}

/* Up to the mark that ends it; what ended it otherwise is returned: Ctrl-C, KEY_HELD or KEY_CLOSED. */
static int read_paste(cli_editor *e)
{
    static const char mark[] = "\033[201~";
    paste p = {.e = e};
    int c = KEY_NONE, previous = 0;
    for (size_t matched = 0; matched < sizeof mark - 1;) {
        c = read_byte();
        if (c == CTRL_C || c > 255) break;
        if (c == mark[matched]) {
            matched++;
            continue;
        }
        for (size_t i = 1; i < matched; i++) put(&p, mark[i], 0);
        matched = c == ESCAPE;
        if (!matched) put(&p, c, previous);
        previous = c;
    }
    put_block(&p);
    if (p.refused) putchar('\a');
    return c == CTRL_C || c > 255 ? c : KEY_NONE;
}

/* ---- lines ------------------------------------------------------------------------------------------------- */

static bool begin_editing(const cli_editor *e)
{
    struct termios raw = e->cooked;
    raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) return false;
    cli_hold_signals();
    fputs("\033[?2004h", stdout);
    return true;
}

static void end_editing(const cli_editor *e)
{
    fputs("\033[?2004l\n", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &e->cooked);
    cli_release_signals();
}

/* The terminal as it was, while the program is stopped; a signal that was held may end it. */
static bool suspend(const cli_editor *e, int c)
{
    end_editing(e);
    if (c == CTRL_Z) raise(SIGTSTP);
    return begin_editing(e);
}

/* Typed bytes; a character is drawn when it is whole, pasted text when it is all there. */
static bool more_is_waiting(void)
{
    int waiting = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

static cli_line_end read_keys(cli_editor *e)
{
    draw(e);
    while (true) {
        int c = read_byte();
        if (c == ESCAPE) c = read_escape();
        if (c == KEY_PASTE) c = read_paste(e);
        if (c == CTRL_C || (c == KEY_CLOSED && cli_interrupted(NULL))) return CLI_LINE_INTERRUPTED;
        if (c == KEY_CLOSED || (c == CTRL_D && e->n == 0)) return CLI_LINE_END_OF_INPUT;
        if (c == '\r' || c == '\n') break;
        const char byte = (char)(unsigned char)c;
        if ((c == CTRL_Z || c == KEY_HELD) && !suspend(e, c)) return CLI_LINE_END_OF_INPUT;
        if (c == '\t' || (c >= ' ' && c < 256 && c != BACKSPACE)) insert(e, c == '\t' ? " " : &byte, 1);
        else edit(e, c);
        if (!more_is_waiting()) draw(e);
    }
    draw_finished(e);
    return CLI_LINE;
}

static cli_line_end read_edited(cli_editor *e)
{
    if (!begin_editing(e)) return CLI_LINE_END_OF_INPUT;
    const cli_line_end end = read_keys(e);
    end_editing(e);
    if (end == CLI_LINE) remember(e);
    return end;
}

/* A pipe, a file or a dumb terminal, byte by byte so that nothing beyond the line is taken. */
static cli_line_end read_plain(cli_editor *e)
{
    if (isatty(STDIN_FILENO) == 1) fputs(e->prompt, stdout);
    fflush(stdout);
    while (true) {
        const int c = read_byte();
        if (c == KEY_CLOSED && cli_interrupted(NULL)) return CLI_LINE_INTERRUPTED;
        if (c == KEY_CLOSED) return e->n > 0 ? CLI_LINE : CLI_LINE_END_OF_INPUT;
        if (c == '\n') return CLI_LINE;
        const char byte = (char)(unsigned char)c;
        insert(e, &byte, 1);
    }
}

cli_line_end cli_editor_read(cli_editor *e, const char *prompt, const char **line, size_t *n)
{
    e->n = e->cursor = 0;
    e->prompt = prompt;
    e->shown = e->n_history;
    const cli_line_end end = e->editing ? read_edited(e) : read_plain(e);
    if (e->n > 0 && e->text[e->n - 1] == '\r') e->n--;
    e->text[e->n] = 0;
    *line = e->text;
    *n = e->n;
    return end;
}
