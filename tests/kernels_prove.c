/* Every kernel and every operation that this CPU can run keeps its promise. PINCH_LONG=1: ten times as many cases. */
#include "base/cpu.h"
#include "kernels/prove.h"
#include "test.h"

static const char *current = "";

static void on_start(void *user, const char *name)
{
    (void)user;
    current = name;
}

static bool on_proof(void *user, const pn_proof *proof)
{
    int *n = user;
    ++*n;
    CHECK("kernel keeps its promise", proof->held, "%s: %s", proof->name, proof->failure);
    CHECK("proof has cases", proof->cases >= 50 && proof->floats >= 50, "%s: %llu cases", proof->name, (unsigned long long)proof->cases);
    return false;
}

int main(void)
{
    int n = 0;
    pinch_error err;
    const pn_prove_options options = {
        .features = pn_cpu_features(), .seed = 1, .thorough = getenv("PINCH_LONG") != NULL, .on_start = on_start, .on_proof = on_proof, .user = &n};
    const pinch_status status = pn_prove(&options, &err);
    CHECK("proofs ran", status == PINCH_OK && n > 50, "%d proofs, stopped at %s: %s", n, current, status ? err.message : "");
    return pn_done();
}
