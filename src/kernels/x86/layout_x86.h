/* kernels/x86/layout_x86.h - where the blocks of a packed group lie, and packing them.
 *
 * A template, included after the description of a format, which defines
 *   BLOCK, FILE_BLOCK      weights and file bytes of a block
 *   HEAD_BLOCKS            blocks whose f16 scales share one vector as head: 2 (d only) or 1 (d and the scale of minimums)
 *   BODY_VECTORS           vectors of what else a block has
 *   pack_block(head, body, rows)   packs one block of all rows
 * Packed group: heads, each followed by its blocks' bodies. The head of a last odd block is whole, half of it unused. */

#define BODY_BYTES (BODY_VECTORS * VECTOR_BYTES)
#define UNIT_BYTES (VECTOR_BYTES + HEAD_BLOCKS * BODY_BYTES)

static uint64_t group_bytes(int64_t k)
{
    const uint64_t blocks = (uint64_t)k / BLOCK;
    return pn_round_up((blocks + HEAD_BLOCKS - 1) / HEAD_BLOCKS * VECTOR_BYTES + blocks * BODY_BYTES, 64);
}

/* Where block b's head and body lie in a group. */
PN_INLINE size_t head_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + (size_t)b % HEAD_BLOCKS * (VECTOR_BYTES / 2); }
PN_INLINE size_t body_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + VECTOR_BYTES + (size_t)b % HEAD_BLOCKS * BODY_BYTES; }

/* Once a model: small code. */
static __attribute__((cold)) void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    pack_rows rows;
    pack_begin(&rows, LANES, src, n_valid, (size_t)(k / BLOCK) * FILE_BLOCK, FILE_BLOCK);
    for (int64_t b = 0; b < k / BLOCK; b++, pack_next(&rows, LANES)) pack_block(out + head_at(b), out + body_at(b), &rows);
}
