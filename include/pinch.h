/* pinch.h - the one public header of Pinch, an LLM inference engine for small devices.
 *
 * Whatever is not in this file is not API. C99 and C++ may include it.
 *
 * Model and session. A pinch_model is a loaded file: immutable, shared by any number of
 * sessions in any number of threads. A pinch_session is one mutable timeline (or several, if
 * opened with n_seq > 1); one thread at a time may use it. A session must be closed before its model.
 *
 * Errors. Every function that can fail returns a pinch_status and, when `err` is not NULL,
 * fills *err with a sentence that names the file, the field and the value. A failed call leaves
 * its objects as they were, unless its comment says otherwise. Out-parameters are written only on success.
 *
 * The library has no global state, never calls exit or abort on input, installs no signal
 * handler and prints nothing. */
#ifndef PINCH_H
#define PINCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && defined(PINCH_BUILD)
#define PINCH_API __attribute__((visibility("default")))
#else
#define PINCH_API
#endif

#define PINCH_VERSION "0.1.0"

typedef enum pinch_status {
    PINCH_OK = 0,
    PINCH_ERR_ARGUMENT = 1,    /* the caller asked for something impossible */
    PINCH_ERR_IO = 2,          /* the system refused to open, read or write */
    PINCH_ERR_FORMAT = 3,      /* the file, template or text contradicts itself */
    PINCH_ERR_UNSUPPORTED = 4, /* well-formed, but nothing here runs it */
    PINCH_ERR_MEMORY = 5,      /* the plan does not fit, or an allocation failed */
    PINCH_ERR_CONTEXT = 6,     /* the context is full */
    PINCH_ABORTED = 7          /* the abort callback said stop */
} pinch_status;

typedef struct pinch_error {
    pinch_status status;
    char message[512]; /* one sentence, UTF-8, NUL-terminated, no newline */
} pinch_error;

typedef int32_t pinch_token;
typedef struct pinch_model pinch_model;
typedef struct pinch_session pinch_session;
typedef struct pinch_sampler pinch_sampler;

/* ---- callbacks: all optional; `user` is handed back as given --------------------------------- */

typedef enum pinch_log_level { PINCH_LOG_INFO = 0, PINCH_LOG_WARNING = 1 } pinch_log_level;
typedef void (*pinch_log_fn)(void *user, pinch_log_level level, const char *message);
/* `what` is a constant such as "load"; done <= total. Called from the thread that called in. */
typedef void (*pinch_progress_fn)(void *user, const char *what, uint64_t done, uint64_t total);
/* True stops the running call with PINCH_ABORTED. Asked between batches and between tokens. */
typedef bool (*pinch_abort_fn)(void *user);

typedef struct pinch_callbacks {
    pinch_log_fn log;
    pinch_progress_fn progress;
    pinch_abort_fn abort;
    void *user;
} pinch_callbacks;

/* ---- models ---------------------------------------------------------------------------------- */

typedef enum pinch_activations {
    PINCH_ACTIVATIONS_Q8 = 0, /* rounded to 8 bits per block, as the kernels want: the default */
    PINCH_ACTIVATIONS_F32 = 1 /* weights dequantised, activations float: exact and slow. Keys and values are activations: a cache asked for in q8_0 is one in f16 (logged) */
} pinch_activations;

struct pinch_session_options;

typedef struct pinch_model_options {
    bool vocab_only;               /* open metadata and tokenizer, no weights */
    bool plan_only;                /* check every tensor and plan, load nothing: pinch_session_plan works, sessions do not open */
    const struct pinch_session_options *planned_session; /* NULL, or the session to come: what does not fit is refused before loading */
    bool use_mapping;              /* map weights that no kernel packs; off: read everything. Default on.
                                    * On: a file truncated while in use raises SIGBUS in the reader. */
    bool draft_block;              /* load the model's own block that drafts tokens (MTP) too, for PINCH_DRAFT_MTP; a file without one that runs is an error */
    pinch_activations activations;
    const char *const *kernels;    /* n_kernels strings "TYPE=NAME" as `pinch check` prints them, e.g. "q4_k=scalar" */
    size_t n_kernels;
    int n_threads;                 /* for loading and packing; 0: as many as the machine is good for */
    uint64_t memory_limit;         /* bytes this model and its sessions may plan for; 0: what the system has available */
    pinch_callbacks callbacks;
} pinch_model_options;

PINCH_API pinch_model_options pinch_model_options_default(void);

/* Opens a GGUF file by path: any part of a split model names the whole. NULL options: defaults. */
PINCH_API pinch_status pinch_model_open(pinch_model **out, const char *path, const pinch_model_options *options, pinch_error *err);
/* The same from a descriptor, which is duplicated; `name` stands for the path in messages. Not for split models. */
PINCH_API pinch_status pinch_model_open_fd(pinch_model **out, int fd, const char *name, const pinch_model_options *options, pinch_error *err);
PINCH_API void pinch_model_close(pinch_model *model); /* NULL is fine */

PINCH_API const char *pinch_model_arch(const pinch_model *model);     /* general.architecture; owned by the model */
PINCH_API int32_t pinch_model_n_vocab(const pinch_model *model);      /* entries of the token list */
PINCH_API int32_t pinch_model_n_ctx_train(const pinch_model *model);  /* <arch>.context_length, 0 if absent */
PINCH_API uint64_t pinch_model_n_params(const pinch_model *model);    /* elements of all tensors */

/* A metadata value as text (numbers as JSON writes them, strings as they are). Returns the length that the full text has, without
 * NUL; at most `size` bytes including NUL are written. -1: no such key, or an array. */
PINCH_API int64_t pinch_model_meta(const pinch_model *model, const char *key, char *buffer, size_t size);

/* ---- text and tokens ------------------------------------------------------------------------- */

/* Special ids; -1 where the model has none. */
PINCH_API pinch_token pinch_token_bos(const pinch_model *model);
PINCH_API pinch_token pinch_token_eos(const pinch_model *model);
PINCH_API bool pinch_token_ends_generation(const pinch_model *model, pinch_token token);
PINCH_API bool pinch_model_adds_bos(const pinch_model *model);

/* Text of `n` bytes (any bytes, NUL included) to ids. `add_special`: BOS and EOS as the model asks;
 * `parse_special`: text of special tokens becomes them. *n_out: how many ids there are; PINCH_ERR_ARGUMENT when
 * that is more than `capacity` (then *n_out is still set, and calling with capacity 0 sizes the buffer). */
PINCH_API pinch_status pinch_tokenize(const pinch_model *model, const char *text, size_t n, bool add_special, bool parse_special,
                                      pinch_token *out, size_t capacity, size_t *n_out, pinch_error *err);
/* Ids to bytes, no terminator. `special`: show special tokens. Same rule for capacity. */
PINCH_API pinch_status pinch_detokenize(const pinch_model *model, const pinch_token *tokens, size_t n, bool special,
                                        char *out, size_t capacity, size_t *n_out, pinch_error *err);
/* The bytes of one token, shown as in running text; returns the length, at most `capacity` are written. */
PINCH_API size_t pinch_token_piece(const pinch_model *model, pinch_token token, bool special, char *out, size_t capacity);

typedef struct pinch_message {
    const char *role;    /* "system", "user", "assistant", ... */
    const char *content; /* UTF-8, NUL-terminated */
} pinch_message;

/* Renders messages with the model's own chat template (ChatML when it has none). Same rule for capacity; no terminator. */
PINCH_API pinch_status pinch_chat_render(const pinch_model *model, const pinch_message *messages, size_t n_messages, bool add_generation_prompt,
                                         char *out, size_t capacity, size_t *n_out, pinch_error *err);
/* Renders any template with the variables of a JSON object. `now`: seconds since 1970 for strftime_now, INT64_MIN: the clock. */
PINCH_API pinch_status pinch_template_render(const char *source, size_t n_source, const char *json, size_t n_json, int64_t now,
                                             char *out, size_t capacity, size_t *n_out, pinch_error *err);

/* ---- sessions -------------------------------------------------------------------------------- */

typedef enum pinch_cache_type { PINCH_CACHE_F32 = 0, PINCH_CACHE_F16 = 1, PINCH_CACHE_Q8_0 = 2 } pinch_cache_type;

/* Drafts: tokens that are guessed cheaply, computed in one batch, and kept as far as they are what would have been chosen anyway. The text is the same with
 * every sampler and seed; only the time differs, and drafts are given up where they are measured to make tokens slower. */
typedef enum pinch_draft {
    PINCH_DRAFT_NONE = 0,
    PINCH_DRAFT_LOOKUP = 1, /* what followed the last few tokens where they came before in the text */
    PINCH_DRAFT_MTP = 2     /* by the model's own block, see draft_block of pinch_model_options */
} pinch_draft;

#define PINCH_MAX_DRAFT 7 /* tokens of a draft */

typedef struct pinch_session_options {
    int32_t n_ctx;           /* positions per sequence; 0: the model's, at most 8192, less where memory asks for it (logged) */
    int32_t n_batch;         /* rows computed at once; 0: 256, at most n_ctx */
    int32_t n_seq;           /* sequences; 0: 1 */
    int n_threads;           /* generation; 0: derived from the machine's cores */
    int n_threads_batch;     /* prompts; 0: as n_threads */
    pinch_cache_type type_k; /* default f16 */
    pinch_cache_type type_v; /* default f16 */
    int32_t n_checkpoints;   /* places in texts to go back to without computing all again, where recurrent layers or windows forget (the end of each
                              * prompt, and every 1,024 tokens of it); 0: with recurrent layers as many as 64 MiB hold, 1..8, else none; < 0: none */
    pinch_draft draft;       /* what pinch_generate does; default none */
    int32_t n_draft;         /* tokens of one draft at most, 1..PINCH_MAX_DRAFT, cut to n_batch - 1; 0: what suits the kind */
    pinch_callbacks callbacks;
} pinch_session_options;

PINCH_API pinch_session_options pinch_session_options_default(void);

/* What a session (and its model) takes, in bytes; peak resident memory stays at or below `total`. */
typedef struct pinch_memory_plan {
    uint64_t weights_resident; /* packed or copied weights, anonymous memory */
    uint64_t weights_mapped;   /* weights used in place from the file's pages */
    uint64_t kv;               /* keys, values and what recurrent layers carry */
    uint64_t checkpoints;      /* copies of what going on changes: windows, and what recurrent layers carry */
    uint64_t drafts;           /* what recurrent layers carried after each token of a draft */
    uint64_t scratch;          /* activations, logits, per-thread work */
    uint64_t other;            /* vocabulary, metadata, texts, tables, the program itself */
    uint64_t total;
    uint64_t available;        /* what the system had to give when asked, or memory_limit beside other sessions */
    int32_t n_ctx, n_batch, n_seq; /* as chosen */
    pinch_cache_type type_k, type_v; /* as used */
} pinch_memory_plan;

/* The plan without opening anything; PINCH_ERR_MEMORY (with numbers and what would help) if it does not fit. *plan is filled even then. */
PINCH_API pinch_status pinch_session_plan(const pinch_model *model, const pinch_session_options *options, pinch_memory_plan *plan, pinch_error *err);

PINCH_API pinch_status pinch_session_open(pinch_session **out, pinch_model *model, const pinch_session_options *options, pinch_error *err);
PINCH_API void pinch_session_close(pinch_session *session); /* NULL is fine */

PINCH_API int32_t pinch_session_n_ctx(const pinch_session *session);
PINCH_API int32_t pinch_session_position(const pinch_session *session, int32_t seq); /* tokens held by a sequence */

/* Appends tokens to sequence `seq` and computes; afterwards pinch_session_logits() is the last token's row. On failure or abort
 * the sequence is as it was, and there are no logits. (This and what follows: a sequence that going back must compute again, and
 * that cannot be, because the file can no longer be read, is left empty.) */
PINCH_API pinch_status pinch_session_feed(pinch_session *session, int32_t seq, const pinch_token *tokens, size_t n, pinch_error *err);

/* One row of a batch over several sequences: appended at the end of `seq`. */
typedef struct pinch_row {
    pinch_token token;
    int32_t seq;
    bool logits; /* compute this row's logits */
} pinch_row;
/* Receives logits [n_vocab] of row `index`; true stops with PINCH_ABORTED. The row is valid during the call. */
typedef bool (*pinch_row_fn)(void *user, size_t index, const float *logits, int32_t n_vocab);
/* Appends any number of rows of any sequences, in order; each gets the bits that it would get alone. */
PINCH_API pinch_status pinch_session_eval(pinch_session *session, const pinch_row *rows, size_t n, pinch_row_fn fn, void *user, pinch_error *err);

/* Logits [n_vocab] of the last row that wanted them, owned by the session, valid until the next call that computes; NULL: it wanted none.
 * They may be changed in place (samplers do). Ids that a pruned head lacks hold -inf. */
PINCH_API float *pinch_session_logits(pinch_session *session);

/* Makes sequence `seq` hold exactly `tokens`, keeping what it shares with them and computing the rest (at least the last token, so
 * that logits exist). *reused (may be NULL): how many were not computed. On failure or abort it holds what both texts share, or nothing. */
PINCH_API pinch_status pinch_session_sync(pinch_session *session, int32_t seq, const pinch_token *tokens, size_t n, size_t *reused, pinch_error *err);
/* Goes back to `n` tokens. Where a window or a recurrent layer no longer holds what is needed, the session replays from the newest checkpoint
 * before: exact, slower. */
PINCH_API pinch_status pinch_session_truncate(pinch_session *session, int32_t seq, int32_t n, pinch_error *err);
/* Makes sequence `to` a copy of `from`. */
PINCH_API pinch_status pinch_session_copy(pinch_session *session, int32_t from, int32_t to, pinch_error *err);

/* ---- snapshots: a sequence as bytes --------------------------------------------------------------- */

/* Takes n bytes of a snapshot; false stops with PINCH_ERR_IO. */
typedef bool (*pinch_write_fn)(void *user, const void *bytes, size_t n);
/* Fills n bytes; false: there are not as many, or they cannot be read. */
typedef bool (*pinch_read_fn)(void *user, void *bytes, size_t n);

/* Writes what sequence `seq` holds, text and state, so that a session of the same model with the same cache types goes on from it with the same
 * bits, whatever its context and batch. One that drafts by the model's own block (PINCH_DRAFT_MTP) and one that does not are no such two.
 * From a callback of a generation with drafts it is refused while guesses are ahead of the text. */
PINCH_API pinch_status pinch_session_save(const pinch_session *session, int32_t seq, pinch_write_fn fn, void *user, pinch_error *err);
/* Makes sequence `seq` what a snapshot holds; there are no logits until tokens are fed. A snapshot of another model, version, cache type or of a
 * session that drafts otherwise (see pinch_session_save), or one too long, is refused and the sequence stays as it was; one that turns out short or damaged leaves it empty. */
PINCH_API pinch_status pinch_session_load(pinch_session *session, int32_t seq, pinch_read_fn fn, void *user, pinch_error *err);

/* ---- sampling: order, formulas and defaults in docs/DESIGN.md --------------------------------- */

typedef struct pinch_logit_bias {
    pinch_token token;
    float bias;
} pinch_logit_bias;

typedef struct pinch_sampler_options {
    uint64_t seed; /* the same seed gives the same text on every machine whose kernels are EXACT */
    float temperature;             /* 0.8; <= 0: greedy */
    int32_t top_k;                 /* 40; <= 0: off */
    float top_p;                   /* 0.95; >= 1: off */
    float min_p;                   /* 0.05; <= 0: off */
    float typical_p;               /* 1: off */
    float top_n_sigma;             /* -1: off */
    float xtc_probability;         /* 0: off */
    float xtc_threshold;           /* 0.1 */
    float repeat_penalty;          /* 1: off */
    int32_t repeat_last_n;         /* 64; 0: off; -1: the context */
    float frequency_penalty;       /* 0 */
    float presence_penalty;        /* 0 */
    float dry_multiplier;          /* 0: off */
    float dry_base;                /* 1.75 */
    int32_t dry_allowed_length;    /* 2 */
    int32_t dry_penalty_last_n;    /* 64 */
    const char *const *dry_breakers; /* NULL: newline : " * */
    size_t n_dry_breakers;
    int32_t mirostat;              /* 0: off, 2 */
    float mirostat_tau;            /* 5 */
    float mirostat_eta;            /* 0.1 */
    const pinch_logit_bias *logit_bias;
    size_t n_logit_bias;
} pinch_sampler_options;

PINCH_API pinch_sampler_options pinch_sampler_options_default(void);
PINCH_API pinch_status pinch_sampler_open(pinch_sampler **out, const pinch_model *model, const pinch_sampler_options *options, pinch_error *err);
PINCH_API void pinch_sampler_close(pinch_sampler *sampler); /* NULL is fine */
/* Tells the sampler a token of the text so far (prompt or generated) for penalties. */
PINCH_API void pinch_sampler_accept(pinch_sampler *sampler, pinch_token token);
/* Chooses from logits [n_vocab] (may change them); does not accept the choice. Allocates nothing. */
PINCH_API pinch_token pinch_sampler_choose(pinch_sampler *sampler, float *logits);
PINCH_API void pinch_sampler_reset(pinch_sampler *sampler); /* forgets the text, restarts the random numbers */

/* ---- generation ------------------------------------------------------------------------------ */

typedef enum pinch_stop { PINCH_STOP_EOS = 0, PINCH_STOP_LENGTH = 1, PINCH_STOP_STRING = 2, PINCH_STOP_ABORT = 3 } pinch_stop;

/* One generated token and the text that became certain with it (whole UTF-8 characters, may be empty). True stops. Token -1: the text
 * that was still held back when generation ended. With drafts, the session's position and logits are all that may be asked for here. */
typedef bool (*pinch_token_fn)(void *user, pinch_token token, const char *text, size_t n);

typedef struct pinch_generate_options {
    int32_t max_tokens;        /* < 0: until the context is full */
    bool ignore_eos;           /* end tokens are shown like any other and generation goes on */
    bool special;              /* show special tokens in the text */
    const char *const *stops;  /* generation ends before any of these texts */
    size_t n_stops;
    pinch_token_fn on_token;
    void *user;
} pinch_generate_options;

typedef struct pinch_draft_stats {
    int32_t n_drafted, n_accepted; /* tokens */
    bool given_up;                 /* in the end there were none, as they were all wrong or tokens took longer with them */
    double plain_ms, draft_ms;     /* that a token took without and with drafts, of late; 0: not measured */
} pinch_draft_stats;

typedef struct pinch_generate_result {
    int32_t n_tokens;
    pinch_stop stop;
    pinch_draft_stats drafts;      /* zero without drafts */
} pinch_generate_result;

PINCH_API pinch_generate_options pinch_generate_options_default(void);
/* Samples and feeds until a stop, starting from the current logits, which must be of sequence `seq` as it is. The last token is shown but not fed:
 * who goes on feeds it first. `result` may be NULL. A failure leaves what was generated before it in the sequence. */
PINCH_API pinch_status pinch_generate(pinch_session *session, int32_t seq, pinch_sampler *sampler, const pinch_generate_options *options,
                                      pinch_generate_result *result, pinch_error *err);

#ifdef __cplusplus
}
#endif
#endif
