/* llama: Llama 1 to 3, Mistral, Mixtral, SmolLM, TinyLlama, Yi and many more; dense, or experts as in Mixtral. */
#include "models/arch.h"

void pn_llama_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true});
}
