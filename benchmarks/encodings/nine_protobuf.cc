// The nine fields with protobuf's C++: one message object for each direction, used again and again.
#include <cstring>

#include "nine.h"
#include "nine.pb.h"

namespace
{

bench::Nine outgoing, incoming;

const uint8_t *serialise(const struct nine *in, uint8_t *room, size_t *len)
{
    bench::Nine &message = outgoing;
    message.Clear();
    message.set_flag(in->flag);
    message.set_number(in->number);
    message.set_price(in->price);
    if (in->has_small) {
        message.set_small(in->small);
    }
    message.set_fixed(in->fixed);
    message.set_text(in->text);
    message.mutable_flags()->Add(in->flags, in->flags + 3);
    message.mutable_values()->Add(in->values, in->values + in->count);
    message.add_pair(in->pair[0]);
    message.add_pair(in->pair[1]);
    size_t length = message.ByteSizeLong();
    if (length > NINE_BYTES_MAX || !message.IsInitialized()) {
        return nullptr;
    }
    message.SerializeWithCachedSizesToArray(room);
    *len = length;
    return room;
}

bool take(const std::string &from, char *to, size_t room)
{
    if (from.size() >= room) {
        return false;
    }
    memcpy(to, from.c_str(), from.size() + 1);
    return true;
}

bool parse(const uint8_t *bytes, size_t len, struct nine *out)
{
    bench::Nine &message = incoming;
    if (!message.ParseFromArray(bytes, static_cast<int>(len)) || message.flags_size() != 3 ||
        message.pair_size() != 2 || message.values_size() > 8) {
        return false;
    }
    out->flag = message.flag();
    out->number = message.number();
    out->price = message.price();
    out->has_small = message.has_small();
    out->small = out->has_small ? static_cast<int8_t>(message.small()) : 0;
    memcpy(out->flags, message.flags().data(), sizeof out->flags);
    out->count = message.values_size();
    memcpy(out->values, message.values().data(), static_cast<size_t>(out->count) * sizeof out->values[0]);
    return take(message.fixed(), out->fixed, sizeof out->fixed) && take(message.text(), out->text, sizeof out->text) &&
           take(message.pair(0), out->pair[0], sizeof out->pair[0]) &&
           take(message.pair(1), out->pair[1], sizeof out->pair[1]);
}

} // namespace

int main(int argc, char **argv)
{
    static const struct nine_encoding encoding = {"protobuf", serialise, parse, nullptr};
    google::protobuf::SetLogHandler(nullptr); // half a message is tried on purpose
    return nine_main(argc, argv, &encoding);
}
