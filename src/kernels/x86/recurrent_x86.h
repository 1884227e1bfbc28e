/* kernels/x86/recurrent_x86.h - convolutions and selective scans of recurrent layers. Meaning and order of sums: ops.def.
 *
 * A template over the words of lanes_avx512.h or lanes_avx2.h, included after math_x86.h. A convolution's 16 channels go over all
 * rows, with taps and tail in registers where their number is a constant. */

PN_INLINE lanes some(const float *p, lanes_part m, bool whole) { return whole ? l_load(p) : l_load_part(p, m); }
PN_INLINE void put_some(float *p, lanes_part m, bool whole, lanes v)
{
    if (whole) l_store(p, v);
    else l_store_part(p, m, v);
}

PN_INLINE lanes conv_input(const pn_conv_rows *c, int64_t row, int64_t i, lanes_part m, bool whole)
{
    const int64_t at = row * c->x_stride + i;
    const lanes x = some(c->x + at, m, whole);
    return c->in_gate ? l_mul(some(c->in_gate + at, m, whole), x) : x;
}

PN_INLINE void conv_output(const pn_conv_rows *c, int64_t row, int64_t i, lanes_part m, bool whole, lanes acc)
{
    if (c->bias) acc = l_add(acc, some(c->bias + i, m, whole));
    if (c->silu) acc = l_silu(acc);
    if (c->out_gate) acc = l_mul(some(c->out_gate + row * c->x_stride + i, m, whole), acc);
    put_some(c->y + row * c->y_stride + i, m, whole, acc);
}

/* Channels i .. i+15. */
PN_INLINE void conv_lanes(const pn_conv_rows *c, int64_t i, int n_taps)
{
    lanes taps[PN_MAX_TAPS], u[PN_MAX_TAPS];
    PN_UNROLL for (int k = 0; k < n_taps; k++) taps[k] = l_load(c->taps + k * c->stride + i);
    PN_UNROLL for (int k = 0; k < n_taps - 1; k++) u[k] = l_load(c->tail + k * c->stride + i);
    for (int64_t row = 0; row < c->n_rows; row++) {
        lanes acc = l_set(0);
        u[n_taps - 1] = conv_input(c, row, i, l_first(16), true);
        PN_UNROLL for (int k = 0; k < n_taps; k++) acc = l_fma(taps[k], u[k], acc);
        PN_UNROLL for (int k = 0; k < n_taps - 1; k++) u[k] = u[k + 1];
        conv_output(c, row, i, l_first(16), true, acc);
    }
    PN_UNROLL for (int k = 0; k < n_taps - 1; k++) l_store(c->tail + k * c->stride + i, u[k]);
}

/* Any number of taps, channels i .. i+15 or those of m: the tail moves up in memory. */
static void conv_any(const pn_conv_rows *c, int64_t i, lanes_part m, bool whole)
{
    const int last = c->n_taps - 1;
    for (int64_t row = 0; row < c->n_rows; row++) {
        const lanes x = conv_input(c, row, i, m, whole);
        lanes acc = l_set(0);
        for (int k = 0; k < last; k++) {
            const lanes u = some(c->tail + k * c->stride + i, m, whole);
            acc = l_fma(some(c->taps + k * c->stride + i, m, whole), u, acc);
            if (k > 0) put_some(c->tail + (k - 1) * c->stride + i, m, whole, u);
        }
        acc = l_fma(some(c->taps + last * c->stride + i, m, whole), x, acc);
        put_some(c->tail + (last - 1) * c->stride + i, m, whole, x);
        conv_output(c, row, i, m, whole, acc);
    }
}

static void conv(const pn_conv_rows *c)
{
    for (int64_t i = 0; i < c->n; i += 16) {
        const bool whole = i + 16 <= c->n;
        const lanes_part m = l_first(c->n - i);
        if (!whole) conv_any(c, i, m, whole);
        else if (c->n_taps == 3) conv_lanes(c, i, 3); /* LFM2 */
        else if (c->n_taps == 4) conv_lanes(c, i, 4); /* Mamba-2, DeltaNet */
        else if (c->n_taps == 7) conv_lanes(c, i, 7); /* LFM3 */
        else conv_any(c, i, m, whole);
    }
}

/* The strip of channels [channel, channel + PN_STRIP), those of m, over rows [row, row + n_rows): each value of the state is loaded and stored once for all
 * of the rows. One strip alone: two beside each other are a few pages apart, where loads wait for stores to the same place of another page. */
PN_INLINE void ssm_strip(const pn_ssm_rows *s, int64_t channel, int64_t row, int n_rows, lanes_part m)
{
    lanes x[ssm_max_rows], y[ssm_max_rows], decay[ssm_max_rows];
    float *state = s->state + channel * s->d_state;
    PN_UNROLL for (int r = 0; r < n_rows; r++)
    {
        decay[r] = l_set(s->decay[row + r]);
        x[r] = l_mul(l_load_part(s->x + (row + r) * s->stride + channel, m), l_set(s->step[row + r]));
        y[r] = l_set(0);
    }
    for (int64_t i = 0; i < s->d_state; i++, state += PN_STRIP) {
        lanes v = l_load(state);
        PN_UNROLL for (int r = 0; r < n_rows; r++)
        {
            v = l_fma(l_set(s->b[(row + r) * s->stride + i]), x[r], l_mul(v, decay[r]));
            y[r] = l_fma(v, l_set(s->c[(row + r) * s->stride + i]), y[r]);
        }
        l_store(state, v);
    }
    PN_UNROLL for (int r = 0; r < n_rows; r++)
    {
        const int64_t at = (row + r) * s->stride + channel;
        l_store_part(s->y + at, m, l_fma(l_load_part(s->x + at, m), l_set(s->skip), y[r]));
    }
}

/* A strip goes through all rows, so that it stays in the first-level cache. */
static void ssm(const pn_ssm_rows *s)
{
    for (int64_t channel = 0; channel < s->n; channel += PN_STRIP) {
        const lanes_part m = l_first(s->n - channel);
        int64_t row = 0;
        for (; row + ssm_max_rows <= s->n_rows; row += ssm_max_rows) ssm_strip(s, channel, row, ssm_max_rows, m);
        for (; row < s->n_rows; row++) ssm_strip(s, channel, row, 1, m);
    }
}
