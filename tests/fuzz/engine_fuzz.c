/* Any bytes as a model file: engine_use.h. */
#include "engine_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_model_file(data, size, use_how_of(size, 47));
    return 0;
}
