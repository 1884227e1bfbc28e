/* kernels/neon/pin.h - one NEON instruction a line, in the order written.
 *
 * In-order cores (A53, A55) live by the order of instructions, and neither gcc 12 nor clang 14 keeps the order that a hot loop was given:
 * scheduled by gcc, the same Q4_K code costs 1.7 times as much (docs/SPEED.md). So each macro is one volatile asm statement with vector
 * operands: compilers keep their order, allocate the registers and fuse no loads. With -DPN_PIN=0 each is the intrinsic instead: the plain
 * form, same results. Operands are vector variables of any element type; `lane`, `n` and `off` are constants; the destination comes first.
 * Knows nothing of formats. */
#ifndef PN_NEON_PIN_H
#define PN_NEON_PIN_H

#include <arm_neon.h>
#include <stdint.h>

#ifndef PN_PIN
#define PN_PIN 1
#endif

#if PN_PIN

#define PIN_LOAD(text, d, p, off) __asm__ volatile(text : "=w"(d) : "r"(p), "i"(off) : "memory")
#define PIN_1(text, d, a) __asm__ volatile(text : "=w"(d) : "w"(a))
#define PIN_1N(text, d, a, n) __asm__ volatile(text : "=w"(d) : "w"(a), "i"(n))
#define PIN_2(text, d, a, b) __asm__ volatile(text : "=w"(d) : "w"(a), "w"(b))
#define PIN_2N(text, d, a, b, n) __asm__ volatile(text : "=w"(d) : "w"(a), "w"(b), "i"(n))
#define PIN_ACC_1(text, d, a) __asm__ volatile(text : "+w"(d) : "w"(a))
#define PIN_ACC_1N(text, d, a, n) __asm__ volatile(text : "+w"(d) : "w"(a), "i"(n))
#define PIN_ACC(text, d, a, b) __asm__ volatile(text : "+w"(d) : "w"(a), "w"(b))
#define PIN_ACC_N(text, d, a, b, n) __asm__ volatile(text : "+w"(d) : "w"(a), "w"(b), "i"(n))

/* A variable that lives in one register: gcc otherwise moves accumulators about between statements that update them. */
#define PIN_VARIABLE(type, name, number) register type name __asm__("v" #number)

#define V_LDR(d, p, off) PIN_LOAD("ldr %q0, [%1, %2]", d, p, off)
#define V_LDR_D(d, p, off) PIN_LOAD("ldr %d0, [%1, %2]", d, p, off)
#define V_LDR_S(d, p, off) PIN_LOAD("ldr %s0, [%1, %2]", d, p, off)
#define V_STR(s, p, off) __asm__ volatile("str %q0, [%1, %2]" : : "w"(s), "r"(p), "i"(off) : "memory")
#define V_ADVANCE(p, n) __asm__ volatile("add %0, %0, %1" : "+r"(p) : "i"(n)) /* a pointer; gcc would add just before each use */
#define V_ZERO(d) __asm__ volatile("movi %d0, #0" : "=w"(d))
#define V_AND(d, a, b) PIN_2("and %0.16b, %1.16b, %2.16b", d, a, b)
#define V_USHR(d, a, n) PIN_1N("ushr %0.16b, %1.16b, %2", d, a, n)
#define V_SHL(d, a, n) PIN_1N("shl %0.16b, %1.16b, %2", d, a, n)
#define V_SSHR(d, a, n) PIN_1N("sshr %0.16b, %1.16b, %2", d, a, n)
#define V_SLI(d, a, n) PIN_ACC_1N("sli %0.16b, %1.16b, %2", d, a, n)
#define V_SHL_4S(d, a, n) PIN_1N("shl %0.4s, %1.4s, %2", d, a, n)
#define V_TBL(d, a, index) PIN_2("tbl %0.16b, {%1.16b}, %2.16b", d, a, index)
#define V_ADD_4S(d, a, b) PIN_2("add %0.4s, %1.4s, %2.4s", d, a, b)
#define V_MLA_4S(d, a, b) PIN_ACC("mla %0.4s, %1.4s, %2.4s", d, a, b)
#define V_SXTL_8H(d, a) PIN_1("sxtl %0.8h, %1.8b", d, a)
#define V_SXTL2_8H(d, a) PIN_1("sxtl2 %0.8h, %1.16b", d, a)
#define V_UXTL_8H(d, a) PIN_1("uxtl %0.8h, %1.8b", d, a)
#define V_SXTL_4S(d, a) PIN_1("sxtl %0.4s, %1.4h", d, a)
#define V_SXTL2_4S(d, a) PIN_1("sxtl2 %0.4s, %1.8h", d, a)
/* 8-bit products in 16-bit lanes, from the low and the high halves of a and b */
#define V_SMULL(d, a, b) PIN_2("smull %0.8h, %1.8b, %2.8b", d, a, b)
#define V_SMULL2(d, a, b) PIN_2("smull2 %0.8h, %1.16b, %2.16b", d, a, b)
#define V_SMLAL(d, a, b) PIN_ACC("smlal %0.8h, %1.8b, %2.8b", d, a, b)
#define V_SMLAL2(d, a, b) PIN_ACC("smlal2 %0.8h, %1.16b, %2.16b", d, a, b)
/* 16-bit products in 32-bit lanes */
#define V_SMLAL_4S(d, a, b) PIN_ACC("smlal %0.4s, %1.4h, %2.4h", d, a, b)
#define V_SMLAL2_4S(d, a, b) PIN_ACC("smlal2 %0.4s, %1.8h, %2.8h", d, a, b)
#define V_SADDLP(d, a) PIN_1("saddlp %0.4s, %1.8h", d, a)
#define V_SADALP(d, a) PIN_ACC_1("sadalp %0.4s, %1.8h", d, a)
#define V_ADDP_8H(d, a, b) PIN_2("addp %0.8h, %1.8h, %2.8h", d, a, b)
#define V_ADDP_4S(d, a, b) PIN_2("addp %0.4s, %1.4s, %2.4s", d, a, b)
/* d[row] += the four bytes of w's row times the four bytes of x's lane */
#define V_SDOT(d, w, x, lane) PIN_ACC_N("sdot %0.4s, %1.16b, %2.4b[%3]", d, w, x, lane)
#define V_FCVTL(d, a) PIN_1("fcvtl %0.4s, %1.4h", d, a)
#define V_FCVTL2(d, a) PIN_1("fcvtl2 %0.4s, %1.8h", d, a)
/* floats of their upper halves */
#define V_SHLL(d, a) PIN_1("shll %0.4s, %1.4h, #16", d, a)
#define V_SHLL2(d, a) PIN_1("shll2 %0.4s, %1.8h, #16", d, a)
/* float(a), float(a / 4), float(a / 16): one rounding each */
#define V_SCVTF(d, a) PIN_1("scvtf %0.4s, %1.4s", d, a)
#define V_SCVTF_4(d, a) PIN_1("scvtf %0.4s, %1.4s, #2", d, a)
#define V_SCVTF_8(d, a) PIN_1("scvtf %0.4s, %1.4s, #3", d, a)
#define V_SCVTF_16(d, a) PIN_1("scvtf %0.4s, %1.4s, #4", d, a)
#define V_FMUL(d, a, b) PIN_2("fmul %0.4s, %1.4s, %2.4s", d, a, b)
#define V_FMUL_LANE(d, a, b, lane) PIN_2N("fmul %0.4s, %1.4s, %2.s[%3]", d, a, b, lane)
#define V_FMLA(d, a, b) PIN_ACC("fmla %0.4s, %1.4s, %2.4s", d, a, b)
#define V_FMLS(d, a, b) PIN_ACC("fmls %0.4s, %1.4s, %2.4s", d, a, b)
#define V_FMLA_LANE(d, a, b, lane) PIN_ACC_N("fmla %0.4s, %1.4s, %2.s[%3]", d, a, b, lane)

#else

#define PIN_TO(d, value) ((d) = (__typeof__(d))(value))
#define PIN_LOW(a) vget_low_s8((int8x16_t)(a))
#define PIN_LOW_H(a) vget_low_s16((int16x8_t)(a))

#define PIN_VARIABLE(type, name, number) type name

#define V_LDR(d, p, off) PIN_TO(d, vld1q_u8((const uint8_t *)(p) + (off)))
#define V_LDR_D(d, p, off) PIN_TO(d, vcombine_u8(vld1_u8((const uint8_t *)(p) + (off)), vdup_n_u8(0)))
#define V_LDR_S(d, p, off) PIN_TO(d, vld1q_lane_u32((const uint32_t *)(const void *)((const uint8_t *)(p) + (off)), vdupq_n_u32(0), 0))
#define V_STR(s, p, off) vst1q_u8((uint8_t *)(p) + (off), (uint8x16_t)(s))
#define V_ADVANCE(p, n) ((p) += (n))
#define V_ZERO(d) PIN_TO(d, vdupq_n_u8(0))
#define V_AND(d, a, b) PIN_TO(d, vandq_u8((uint8x16_t)(a), (uint8x16_t)(b)))
#define V_USHR(d, a, n) PIN_TO(d, vshrq_n_u8((uint8x16_t)(a), n))
#define V_SHL(d, a, n) PIN_TO(d, vshlq_n_u8((uint8x16_t)(a), n))
#define V_SSHR(d, a, n) PIN_TO(d, vshrq_n_s8((int8x16_t)(a), n))
#define V_SLI(d, a, n) PIN_TO(d, vsliq_n_u8((uint8x16_t)(d), (uint8x16_t)(a), n))
#define V_SHL_4S(d, a, n) PIN_TO(d, vshlq_n_s32((int32x4_t)(a), n))
#define V_TBL(d, a, index) PIN_TO(d, vqtbl1q_u8((uint8x16_t)(a), (uint8x16_t)(index)))
#define V_ADD_4S(d, a, b) PIN_TO(d, vaddq_s32((int32x4_t)(a), (int32x4_t)(b)))
#define V_MLA_4S(d, a, b) PIN_TO(d, vmlaq_s32((int32x4_t)(d), (int32x4_t)(a), (int32x4_t)(b)))
#define V_SXTL_8H(d, a) PIN_TO(d, vmovl_s8(PIN_LOW(a)))
#define V_SXTL2_8H(d, a) PIN_TO(d, vmovl_high_s8((int8x16_t)(a)))
#define V_UXTL_8H(d, a) PIN_TO(d, vmovl_u8(vget_low_u8((uint8x16_t)(a))))
#define V_SXTL_4S(d, a) PIN_TO(d, vmovl_s16(PIN_LOW_H(a)))
#define V_SXTL2_4S(d, a) PIN_TO(d, vmovl_high_s16((int16x8_t)(a)))
#define V_SMULL(d, a, b) PIN_TO(d, vmull_s8(PIN_LOW(a), PIN_LOW(b)))
#define V_SMULL2(d, a, b) PIN_TO(d, vmull_high_s8((int8x16_t)(a), (int8x16_t)(b)))
#define V_SMLAL(d, a, b) PIN_TO(d, vmlal_s8((int16x8_t)(d), PIN_LOW(a), PIN_LOW(b)))
#define V_SMLAL2(d, a, b) PIN_TO(d, vmlal_high_s8((int16x8_t)(d), (int8x16_t)(a), (int8x16_t)(b)))
#define V_SMLAL_4S(d, a, b) PIN_TO(d, vmlal_s16((int32x4_t)(d), PIN_LOW_H(a), PIN_LOW_H(b)))
#define V_SMLAL2_4S(d, a, b) PIN_TO(d, vmlal_high_s16((int32x4_t)(d), (int16x8_t)(a), (int16x8_t)(b)))
#define V_SADDLP(d, a) PIN_TO(d, vpaddlq_s16((int16x8_t)(a)))
#define V_SADALP(d, a) PIN_TO(d, vpadalq_s16((int32x4_t)(d), (int16x8_t)(a)))
#define V_ADDP_8H(d, a, b) PIN_TO(d, vpaddq_s16((int16x8_t)(a), (int16x8_t)(b)))
#define V_ADDP_4S(d, a, b) PIN_TO(d, vpaddq_s32((int32x4_t)(a), (int32x4_t)(b)))
#define V_SDOT(d, w, x, lane) PIN_TO(d, vdotq_laneq_s32((int32x4_t)(d), (int8x16_t)(w), (int8x16_t)(x), lane))
#define V_FCVTL(d, a) PIN_TO(d, vcvt_f32_f16(vget_low_f16((float16x8_t)(a))))
#define V_FCVTL2(d, a) PIN_TO(d, vcvt_high_f32_f16((float16x8_t)(a)))
#define V_SHLL(d, a) PIN_TO(d, vshlq_n_u32(vmovl_u16(vget_low_u16((uint16x8_t)(a))), 16))
#define V_SHLL2(d, a) PIN_TO(d, vshlq_n_u32(vmovl_high_u16((uint16x8_t)(a)), 16))
#define V_SCVTF(d, a) PIN_TO(d, vcvtq_f32_s32((int32x4_t)(a)))
#define V_SCVTF_4(d, a) PIN_TO(d, vcvtq_n_f32_s32((int32x4_t)(a), 2))
#define V_SCVTF_8(d, a) PIN_TO(d, vcvtq_n_f32_s32((int32x4_t)(a), 3))
#define V_SCVTF_16(d, a) PIN_TO(d, vcvtq_n_f32_s32((int32x4_t)(a), 4))
#define V_FMUL(d, a, b) PIN_TO(d, vmulq_f32((float32x4_t)(a), (float32x4_t)(b)))
#define V_FMUL_LANE(d, a, b, lane) PIN_TO(d, vmulq_laneq_f32((float32x4_t)(a), (float32x4_t)(b), lane))
#define V_FMLA(d, a, b) PIN_TO(d, vfmaq_f32((float32x4_t)(d), (float32x4_t)(a), (float32x4_t)(b)))
#define V_FMLS(d, a, b) PIN_TO(d, vfmsq_f32((float32x4_t)(d), (float32x4_t)(a), (float32x4_t)(b)))
#define V_FMLA_LANE(d, a, b, lane) PIN_TO(d, vfmaq_laneq_f32((float32x4_t)(d), (float32x4_t)(a), (float32x4_t)(b), lane))

#endif
#endif
