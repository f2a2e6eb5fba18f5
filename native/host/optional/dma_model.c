// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model of a DMA engine, for kernels that copy by one. An experiment uses it if
 * its file `objects` lists ream/dma_model.o. It is a dmaengine device, and dcbm
 * uses it like any other.
 *
 * A channel processes one descriptor after the other. Each takes the time that
 * the experiment declares: a setup time, and its bytes at the bandwidth of the
 * channel. The channel interrupts when all descriptors issued together are done.
 *
 * It has no thread. The waiting CPU takes the interrupts when it reads the clock
 * or sleeps. The delay of its wakeup depends on the host, and stands for the
 * cost of an interrupt. Like a device, a channel therefore uses no CPU time of
 * its own.
 *
 * The bytes are copied outside of timed code, by dma_model_settle(). Code must
 * not access a target before that without asking dma_model_has(). Only completed
 * descriptors are copied, in their order.
 * Not modelled: while a device copies, it leaves less memory bandwidth for the
 * CPU.
 */
#ifdef CONFIG_DMA_ENGINE

#include <linux/bitmap.h>
#include <linux/dmaengine.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include "interrupts.h"
#include "kernel.h"
#include "dma_model.h"

#define NR_DESCRIPTORS 1024	/* per channel; dcbm has at most this many in flight */

struct order {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t dst;
	dma_addr_t src;
	size_t len;
	unsigned long done_ns;		/* completion of all that was issued with it */
};

struct channel {
	struct dma_chan chan;
	struct list_head free;
	struct list_head submitted;
	struct list_head issued;
	unsigned long done_ns;		/* completion of all that is issued */
	struct order orders[NR_DESCRIPTORS];
};

static struct {
	struct dma_device dma;
	struct channel *channels;
	unsigned int setup_ns;
	unsigned int mb_per_s;
	/* Deferred copies. */
	struct copy {
		dma_addr_t dst;
		dma_addr_t src;
		size_t len;
	} *copies;
	unsigned long nr_copies, most_copies;
	bool defers;
	/* Bitmap of the frames of such copies. */
	unsigned long *frames;
	unsigned long first_pfn, nr_frames, most_frames;
} model;

static struct channel *to_channel(struct dma_chan *chan)
{
	return container_of(chan, struct channel, chan);
}

/* --- Time --- */

static unsigned long time_of(const struct order *order)
{
	return model.setup_ns + div_u64((u64)order->len * 1000, model.mb_per_s);
}

void dma_model_defers(bool defers)
{
	model.defers = defers;
}

static bool is_among(unsigned long pfn)
{
	return pfn - model.first_pfn < model.nr_frames;
}

static void note_frames(dma_addr_t address, size_t len)
{
	unsigned long pfn;

	for (pfn = PHYS_PFN(address); pfn <= PHYS_PFN(address + len - 1); pfn++)
		if (is_among(pfn))
			__set_bit(pfn - model.first_pfn, model.frames);
}

bool dma_model_has(unsigned long pfn)
{
	return is_among(pfn) && test_bit(pfn - model.first_pfn, model.frames);
}

void dma_model_settle(void)
{
	const struct copy *copy = model.copies;

	for (; copy < model.copies + model.nr_copies; copy++)
		memcpy(phys_to_virt(copy->dst), phys_to_virt(copy->src), copy->len);
	model.nr_copies = 0;
	bitmap_zero(model.frames, model.nr_frames);
}

/* Complete an order: defer or do its copy, and call its callback. */
static void complete_order(struct channel *channel, struct order *order)
{
	struct dma_async_tx_descriptor tx = order->tx;
	const struct dmaengine_result result = { .result = DMA_TRANS_NOERROR };

	if (model.nr_copies == model.most_copies)
		dma_model_settle();
	model.copies[model.nr_copies++] = (struct copy) { order->dst, order->src, order->len };
	note_frames(order->dst, order->len);
	note_frames(order->src, order->len);
	if (!model.defers)
		dma_model_settle();
	channel->chan.completed_cookie = tx.cookie;
	list_move_tail(&order->node, &channel->free);
	if (tx.callback_result)
		tx.callback_result(tx.callback_param, &result);
	else if (tx.callback)
		tx.callback(tx.callback_param);
}

static unsigned long take_interrupts(void)
{
	unsigned long next_ns = ULONG_MAX, now_ns = host_now_ns();
	unsigned int i;

	for (i = 0; i < OFFLOAD_MOST_CHANNELS; i++) {
		struct channel *channel = &model.channels[i];
		struct order *order, *next;

		list_for_each_entry_safe(order, next, &channel->issued, node) {
			if (order->done_ns > now_ns) {
				next_ns = min(next_ns, order->done_ns);
				break;
			}
			complete_order(channel, order);
		}
	}
	return next_ns;
}

/* --- Operations of a dmaengine driver --- */

static dma_cookie_t submit(struct dma_async_tx_descriptor *tx)
{
	struct order *order = container_of(tx, struct order, tx);
	struct channel *channel = to_channel(tx->chan);

	tx->cookie = ++channel->chan.cookie;
	list_add_tail(&order->node, &channel->submitted);
	return tx->cookie;
}

static void issue_pending(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);
	struct order *order;

	channel->done_ns = max(channel->done_ns, host_now_ns());
	list_for_each_entry(order, &channel->submitted, node)
		channel->done_ns += time_of(order);
	list_for_each_entry(order, &channel->submitted, node)
		order->done_ns = channel->done_ns;
	list_splice_tail_init(&channel->submitted, &channel->issued);
}

static struct dma_async_tx_descriptor *
prep_dma_memcpy(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src,
		size_t len, unsigned long flags)
{
	struct channel *channel = to_channel(chan);
	struct order *order = list_first_entry_or_null(&channel->free,
						       struct order, node);

	if (!order)
		return NULL;
	list_del(&order->node);
	memset(&order->tx, 0, sizeof(order->tx));
	dma_async_tx_descriptor_init(&order->tx, chan);
	order->tx.tx_submit = submit;
	order->tx.flags = flags;
	order->dst = dst;
	order->src = src;
	order->len = len;
	return &order->tx;
}

static enum dma_status tx_status(struct dma_chan *chan, dma_cookie_t cookie,
				 struct dma_tx_state *state)
{
	return cookie <= chan->completed_cookie ? DMA_COMPLETE : DMA_IN_PROGRESS;
}

/* Orders that have not been completed are never copied. */
static int terminate_all(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);

	list_splice_tail_init(&channel->issued, &channel->free);
	list_splice_tail_init(&channel->submitted, &channel->free);
	return 0;
}

/* There is no thread that could still be copying. */
static void synchronize(struct dma_chan *chan)
{
}

static int alloc_chan_resources(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);
	unsigned int i;

	INIT_LIST_HEAD(&channel->free);
	for (i = 0; i < NR_DESCRIPTORS; i++)
		list_add_tail(&channel->orders[i].node, &channel->free);
	chan->cookie = 0;
	chan->completed_cookie = 0;
	channel->done_ns = 0;
	return NR_DESCRIPTORS;
}

static void free_chan_resources(struct dma_chan *chan)
{
}

static void init(struct device *dev)
{
	struct dma_device *dma = &model.dma;
	unsigned int i;

	dma->dev = dev;
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
#ifdef HAVE_DMA_REPORTS_ERRORS
	dma->reports_errors = true;
#endif
	dma->device_alloc_chan_resources = alloc_chan_resources;
	dma->device_free_chan_resources = free_chan_resources;
	dma->device_prep_dma_memcpy = prep_dma_memcpy;
	dma->device_tx_status = tx_status;
	dma->device_issue_pending = issue_pending;
	dma->device_terminate_all = terminate_all;
	dma->device_synchronize = synchronize;
	INIT_LIST_HEAD(&dma->channels);
	model.channels = host_alloc(OFFLOAD_MOST_CHANNELS * sizeof(*model.channels));
	for (i = 0; i < OFFLOAD_MOST_CHANNELS; i++) {
		struct channel *channel = &model.channels[i];

		channel->chan.device = dma;
		INIT_LIST_HEAD(&channel->submitted);
		INIT_LIST_HEAD(&channel->issued);
		list_add_tail(&channel->chan.device_node, &dma->channels);
	}
	dma_async_device_register(dma);
	host_set_interrupts(take_interrupts);
}

struct dma_device *dma_model(struct device *dev, const struct offload_request *request)
{
	if (!model.channels)
		init(dev);
	model.setup_ns = request->setup_ns;
	model.mb_per_s = request->mb_per_s;
	model.nr_copies = 0;
	if (request->nr_copies > model.most_copies) {
		host_free(model.copies);
		model.most_copies = request->nr_copies;
		model.copies = host_alloc(model.most_copies * sizeof(*model.copies));
	}
	if (request->nr_frames > model.most_frames) {
		host_free(model.frames);
		model.most_frames = request->nr_frames;
		model.frames = host_alloc(bitmap_size(model.most_frames));
	}
	model.first_pfn = request->first_pfn;
	model.nr_frames = request->nr_frames;
	bitmap_zero(model.frames, model.nr_frames);
	return &model.dma;
}

#endif /* CONFIG_DMA_ENGINE */
