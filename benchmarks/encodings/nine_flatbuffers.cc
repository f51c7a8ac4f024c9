// The nine fields with FlatBuffers' C++: one builder, used again and again; each buffer is verified, as one must with
// what a stranger has sent, and then read in place.
#include <cstring>

#include "nine.h"
#include "nine_generated.h"

namespace
{

const uint8_t *serialise(const struct nine *in, uint8_t *, size_t *len)
{
    static flatbuffers::FlatBufferBuilder builder(NINE_BYTES_MAX);
    static_assert(sizeof(bool) == 1, "flags are copied");
    builder.Clear();
    auto fixed = builder.CreateString(in->fixed);
    auto text = builder.CreateString(in->text);
    auto flags = builder.CreateVector(reinterpret_cast<const uint8_t *>(in->flags), 3);
    auto values = builder.CreateVector(in->values, static_cast<size_t>(in->count));
    flatbuffers::Offset<flatbuffers::String> texts[] = {builder.CreateString(in->pair[0]),
                                                        builder.CreateString(in->pair[1])};
    auto pair = builder.CreateVector(texts, 2);
    bench::NineBuilder nine(builder);
    nine.add_flag(in->flag);
    nine.add_number(in->number);
    nine.add_price(in->price);
    if (in->has_small) {
        nine.add_small(in->small);
    }
    nine.add_fixed(fixed);
    nine.add_text(text);
    nine.add_flags(flags);
    nine.add_values(values);
    nine.add_pair(pair);
    builder.Finish(nine.Finish());
    *len = builder.GetSize();
    return builder.GetBufferPointer();
}

const bench::Nine *verified(const uint8_t *bytes, size_t len)
{
    flatbuffers::Verifier verifier(bytes, len);
    return bench::VerifyNineBuffer(verifier) ? bench::GetNine(bytes) : nullptr;
}

bool take(const flatbuffers::String *from, char *to, size_t room)
{
    if (from->size() >= room) {
        return false;
    }
    memcpy(to, from->c_str(), from->size() + 1);
    return true;
}

bool parse(const uint8_t *bytes, size_t len, struct nine *out)
{
    const bench::Nine *nine = verified(bytes, len);
    if (nine == nullptr || nine->flags()->size() != 3 || nine->pair()->size() != 2 ||
        (nine->values() != nullptr && nine->values()->size() > 8)) {
        return false;
    }
    out->flag = nine->flag();
    out->number = nine->number();
    out->price = nine->price();
    out->has_small = nine->small().has_value();
    out->small = nine->small().has_value() ? nine->small().value() : 0;
    memcpy(out->flags, nine->flags()->data(), sizeof out->flags);
    out->count = nine->values() == nullptr ? 0 : static_cast<int32_t>(nine->values()->size());
    if (out->count != 0) {
        memcpy(out->values, nine->values()->data(), static_cast<size_t>(out->count) * sizeof out->values[0]);
    }
    return take(nine->fixed(), out->fixed, sizeof out->fixed) && take(nine->text(), out->text, sizeof out->text) &&
           take(nine->pair()->Get(0), out->pair[0], sizeof out->pair[0]) &&
           take(nine->pair()->Get(1), out->pair[1], sizeof out->pair[1]);
}

// What FlatBuffers is made for: nothing is copied; each value is looked at where it is.
bool view(const uint8_t *bytes, size_t len, uint64_t *sum)
{
    const bench::Nine *nine = verified(bytes, len);
    if (nine == nullptr) {
        return false;
    }
    uint64_t all = nine->flag() + static_cast<uint64_t>(nine->number()) + static_cast<uint64_t>(nine->price());
    all += nine->small().has_value() + nine->fixed()->size() + static_cast<uint8_t>(nine->fixed()->c_str()[0]);
    all += nine->text()->size() + static_cast<uint8_t>(nine->text()->c_str()[0]);
    for (uint8_t flag : *nine->flags()) {
        all += flag;
    }
    for (int32_t value : *nine->values()) {
        all += static_cast<uint64_t>(value);
    }
    for (const flatbuffers::String *text : *nine->pair()) {
        all += text->size() + static_cast<uint8_t>(text->c_str()[0]);
    }
    *sum += all;
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    static const struct nine_encoding encoding = {"FlatBuffers", serialise, parse, view};
    return nine_main(argc, argv, &encoding);
}
