// SPDX-License-Identifier: GPL-2.0-only
/*
 * swdma: a DMA engine in software, for machines that have none:
 *   insmod swdma.ko nr_channels=4
 * It registers with dmaengine as a driver of hardware does, and a client finds
 * it as it finds hardware, by asking for DMA_MEMCPY. Each channel copies in a
 * kernel thread of its own. It is strict where hardware is: what breaks its
 * alignment or its largest segment is refused and counted, and without
 * DMA_PREP_INTERRUPT there is no callback. It can fail as hardware fails;
 * faults.h says how.
 *
 * With mb_per_s it is no faster than a model of a device: a channel takes
 * setup_ns for each descriptor, and its bytes at that bandwidth, and the last
 * of what was issued together completes no sooner. The thread copies all the
 * same; how often it was slower is counted.
 *
 * A channel that vanished aborts what it has (DMA_TRANS_ABORTED) and refuses
 * all else while its client holds it, as removable engines do. It is not
 * unregistered under its client: dmaengine would free what dma_chan_name()
 * reads, and, with device_release(), touch the channel after it was freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/completion.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/platform_device.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "copy.h"
#include "faults.h"
#include "model.h"

#define MOST_CHANNELS 64
#define MOST_DESCRIPTORS 65536
#define MOST_COPY_ALIGN 21

static unsigned int nr_channels = 16;
module_param(nr_channels, uint, 0444);
MODULE_PARM_DESC(nr_channels, "channels, 1 to 64");

static unsigned int nr_descriptors = 1024;
module_param(nr_descriptors, uint, 0444);
MODULE_PARM_DESC(nr_descriptors, "descriptors of a channel, 1 to 65536");

static unsigned int copy_align;
module_param(copy_align, uint, 0444);
MODULE_PARM_DESC(copy_align, "alignment of addresses and lengths, log2 of bytes");

static unsigned int max_seg_bytes = UINT_MAX;
module_param(max_seg_bytes, uint, 0444);
MODULE_PARM_DESC(max_seg_bytes, "most bytes of a descriptor");

static bool can_terminate = true;
module_param(can_terminate, bool, 0444);
MODULE_PARM_DESC(can_terminate, "0: the engine cannot be stopped, as some cannot");

enum descriptor_state {
	DESCRIPTOR_FREE,
	DESCRIPTOR_PREPARED,	/* with the client, which is to submit it */
	DESCRIPTOR_QUEUED,	/* submitted or issued */
	DESCRIPTOR_ACTIVE,
};

struct descriptor {
	struct dma_async_tx_descriptor tx;
	struct list_head node;		/* on a list of the channel, if any */
	enum descriptor_state state;
	bool terminated;		/* active, and to be dropped */
	unsigned int number;
	dma_addr_t dst;
	dma_addr_t src;
	size_t len;
	size_t copied;
	u64 due_ns;			/* by the model; 0: not the last issued */
	/* These outlive the completion, for tx_status(). */
	dma_cookie_t cookie;
	enum dmaengine_tx_result result;
};

struct channel {
	struct dma_chan chan;
	/*
	 * Guards lists, states and cookies. The worker, alone, carries out
	 * and calls back without it.
	 */
	spinlock_t lock;
	struct list_head free;
	struct list_head submitted;
	struct list_head issued;
	struct descriptor *active;
	bool gone;			/* until the client lets go */
	bool forgetful;			/* the active one gets no callback */
	u64 due_ns;			/* of what is issued, by the model */
	struct completion go_on;	/* ends a stall */
	struct kthread_worker *worker;
	struct kthread_work work;
	struct descriptor *table;
};

struct engine {
	struct dma_device dma;
	struct channel channels[];
};

static struct engine *engine;

static struct channel *to_channel(struct dma_chan *chan)
{
	return container_of(chan, struct channel, chan);
}

/* --- Carrying out --- */

static void release(struct channel *channel, struct descriptor *descriptor)
{
	descriptor->state = DESCRIPTOR_FREE;
	list_add_tail(&descriptor->node, &channel->free);
}

static bool is_stopped(struct channel *channel, struct descriptor *descriptor)
{
	return READ_ONCE(descriptor->terminated) || READ_ONCE(channel->gone);
}

/* Copy up to byte @end of a descriptor, or until told to stop. */
static void copy_until(struct channel *channel, struct descriptor *descriptor,
		       size_t end)
{
	struct device *dev = channel->chan.device->dev;

	while (descriptor->copied < end && !is_stopped(channel, descriptor)) {
		dma_addr_t dst = descriptor->dst + descriptor->copied;
		dma_addr_t src = descriptor->src + descriptor->copied;
		size_t len = end - descriptor->copied;

		len = min(len, PAGE_SIZE - offset_in_page(dst));
		len = min(len, PAGE_SIZE - offset_in_page(src));
		if (!copy_piece(dev, dst, src, len)) {
			descriptor->result = DMA_TRANS_READ_FAILED;
			return;
		}
		WRITE_ONCE(descriptor->copied, descriptor->copied + len);
	}
	/* Streamed stores are seen by others before it says that it is done. */
	wmb();
}

static void stall(struct channel *channel)
{
	unsigned int ms = READ_ONCE(stall_ms);

	if (ms)
		wait_for_completion_timeout(&channel->go_on,
					    msecs_to_jiffies(ms));
	else
		wait_for_completion(&channel->go_on);
}

static void carry_out(struct channel *channel, struct descriptor *descriptor)
{
	size_t half = ALIGN_DOWN(descriptor->len / 2, BIT(copy_align));

	if (is_chosen(&fail_at, descriptor->number)) {
		copy_until(channel, descriptor, half);
		descriptor->result = DMA_TRANS_WRITE_FAILED;
		return;
	}
	if (is_chosen(&short_at, descriptor->number)) {
		copy_until(channel, descriptor, half);
		return;
	}
	if (is_chosen(&stall_at, descriptor->number)) {
		copy_until(channel, descriptor, half);
		stall(channel);
	} else if (is_chosen(&vanish_at, descriptor->number)) {
		copy_until(channel, descriptor, half);
		WRITE_ONCE(channel->gone, true);
	}
	copy_until(channel, descriptor, descriptor->len);
}

/* The next descriptor to carry out or, if the channel is gone, to abort. */
static struct descriptor *take(struct channel *channel)
{
	struct descriptor *descriptor = NULL;
	struct list_head *list = &channel->issued;
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	if (channel->gone && list_empty(list))
		list = &channel->submitted;
	if (!list_empty(list)) {
		descriptor = READ_ONCE(reorder) ?
			list_last_entry(list, struct descriptor, node) :
			list_first_entry(list, struct descriptor, node);
		list_del(&descriptor->node);
		descriptor->state = DESCRIPTOR_ACTIVE;
		channel->active = descriptor;
		reinit_completion(&channel->go_on);
	}
	spin_unlock_irqrestore(&channel->lock, flags);
	return descriptor;
}

static void complete_descriptor(struct channel *channel,
				struct descriptor *descriptor)
{
	struct dma_async_tx_descriptor tx = descriptor->tx;
	struct dmaengine_result result = {};	/* as dmaengine makes of none */
	unsigned long flags;
	bool terminated;

	atomic_long_inc(&descriptors);
	atomic_long_add(descriptor->copied, &bytes);

	spin_lock_irqsave(&channel->lock, flags);
	channel->active = NULL;
	terminated = descriptor->terminated || channel->forgetful ||
		     is_chosen(&drop_at, descriptor->number);
	channel->forgetful = false;
	if (channel->gone || terminated)
		descriptor->result = DMA_TRANS_ABORTED;
	if (!terminated && channel->chan.completed_cookie < tx.cookie)
		channel->chan.completed_cookie = tx.cookie;
	if (results) {
		result.result = descriptor->result;
		result.residue = descriptor->len - descriptor->copied;
	}
	release(channel, descriptor);
	spin_unlock_irqrestore(&channel->lock, flags);

	/* The descriptor may be another one's by now: only the copy is ours. */
	dma_descriptor_unmap(&tx);
	if (terminated || !(tx.flags & DMA_PREP_INTERRUPT))
		return;
	if (tx.callback_result)
		tx.callback_result(tx.callback_param, &result);
	else if (tx.callback)
		tx.callback(tx.callback_param);
}

static void work(struct kthread_work *kthread_work)
{
	struct channel *channel =
		container_of(kthread_work, struct channel, work);
	struct descriptor *descriptor;

	while ((descriptor = take(channel))) {
		if (!READ_ONCE(channel->gone))
			carry_out(channel, descriptor);
		if (descriptor->due_ns && !is_stopped(channel, descriptor))
			model_wait(descriptor->due_ns);
		complete_descriptor(channel, descriptor);
		cond_resched();
	}
}

static void end_stalls(void)
{
	unsigned long flags;

	for (unsigned int i = 0; engine && i < nr_channels; i++) {
		struct channel *channel = &engine->channels[i];

		spin_lock_irqsave(&channel->lock, flags);
		if (channel->active)
			complete(&channel->go_on);
		spin_unlock_irqrestore(&channel->lock, flags);
	}
}

/* --- What dmaengine asks of a driver --- */

static dma_cookie_t submit(struct dma_async_tx_descriptor *tx)
{
	struct descriptor *descriptor =
		container_of(tx, struct descriptor, tx);
	struct channel *channel = to_channel(tx->chan);
	dma_cookie_t cookie;
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	cookie = channel->chan.cookie + 1;
	if (cookie < DMA_MIN_COOKIE) {
		cookie = DMA_MIN_COOKIE;
		channel->chan.completed_cookie = 0;
	}
	channel->chan.cookie = cookie;
	tx->cookie = cookie;
	descriptor->cookie = cookie;
	descriptor->number = atomic_inc_return(&last_number);
	descriptor->state = DESCRIPTOR_QUEUED;
	list_add_tail(&descriptor->node, &channel->submitted);
	spin_unlock_irqrestore(&channel->lock, flags);
	return cookie;
}

static void issue_pending(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);
	struct descriptor *descriptor;
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	channel->due_ns = max(channel->due_ns, ktime_get_ns());
	list_for_each_entry(descriptor, &channel->submitted, node)
		channel->due_ns += model_time_ns(descriptor->len);
	if (READ_ONCE(mb_per_s) && !list_empty(&channel->submitted))
		list_last_entry(&channel->submitted, struct descriptor,
				node)->due_ns = channel->due_ns;
	list_splice_tail_init(&channel->submitted, &channel->issued);
	if (!list_empty(&channel->issued))
		kthread_queue_work(channel->worker, &channel->work);
	spin_unlock_irqrestore(&channel->lock, flags);
}

static struct dma_async_tx_descriptor *
prep_dma_memcpy(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src,
		size_t len, unsigned long flags)
{
	struct channel *channel = to_channel(chan);
	struct descriptor *descriptor;
	unsigned long irq_flags;

	if (!len || len > max_seg_bytes ||
	    !IS_ALIGNED(dst | src | len, BIT_ULL(copy_align))) {
		atomic_long_inc(&refused);
		return NULL;
	}
	do {
		spin_lock_irqsave(&channel->lock, irq_flags);
		descriptor = list_first_entry_or_null(&channel->free,
						      struct descriptor, node);
		if (descriptor && !channel->gone) {
			list_del(&descriptor->node);
			memset(descriptor, 0, sizeof(*descriptor));
			descriptor->state = DESCRIPTOR_PREPARED;
		} else {
			descriptor = NULL;
		}
		spin_unlock_irqrestore(&channel->lock, irq_flags);
	} while (!descriptor && !READ_ONCE(channel->gone) && has_waited());
	if (!descriptor)
		return NULL;
	dma_async_tx_descriptor_init(&descriptor->tx, chan);
	descriptor->tx.tx_submit = submit;
	descriptor->tx.flags = flags;
	descriptor->dst = dst;
	descriptor->src = src;
	descriptor->len = len;
	return &descriptor->tx;
}

/* Exact in whatever order descriptors complete: each one is looked for. */
static enum dma_status tx_status(struct dma_chan *chan, dma_cookie_t cookie,
				 struct dma_tx_state *state)
{
	struct channel *channel = to_channel(chan);
	enum dma_status status = DMA_COMPLETE;
	size_t residue = 0;
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	for (unsigned int i = 0; i < nr_descriptors; i++) {
		struct descriptor *descriptor = &channel->table[i];

		if (descriptor->cookie != cookie ||
		    descriptor->state == DESCRIPTOR_PREPARED)
			continue;
		residue = descriptor->len - READ_ONCE(descriptor->copied);
		if (descriptor->state != DESCRIPTOR_FREE)
			status = DMA_IN_PROGRESS;
		else if (descriptor->result != DMA_TRANS_NOERROR)
			status = DMA_ERROR;
		break;
	}
	dma_set_tx_state(state, channel->chan.completed_cookie,
			 channel->chan.cookie, residue);
	spin_unlock_irqrestore(&channel->lock, flags);
	return status;
}

static void drop_all(struct channel *channel, bool stop)
{
	struct descriptor *descriptor, *next;
	LIST_HEAD(dropped);
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	list_splice_tail_init(&channel->issued, &dropped);
	list_splice_tail_init(&channel->submitted, &dropped);
	list_for_each_entry_safe(descriptor, next, &dropped, node) {
		descriptor->result = DMA_TRANS_ABORTED;
		list_del(&descriptor->node);
		dma_descriptor_unmap(&descriptor->tx);
		release(channel, descriptor);
	}
	channel->due_ns = 0;
	if (channel->active && !stop) {
		channel->forgetful = true;
	} else if (channel->active) {
		WRITE_ONCE(channel->active->terminated, true);
		complete(&channel->go_on);
	}
	spin_unlock_irqrestore(&channel->lock, flags);
}

static int terminate_all(struct dma_chan *chan)
{
	drop_all(to_channel(chan), !READ_ONCE(keeps_writing));
	return 0;
}

static void synchronize(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);

	/* What is forgotten is not waited for either. */
	if (!READ_ONCE(channel->forgetful))
		kthread_flush_worker(channel->worker);
}

static int alloc_chan_resources(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);
	struct kthread_worker *worker;

	channel->table = kvcalloc(nr_descriptors, sizeof(*channel->table),
				  GFP_KERNEL);
	if (!channel->table)
		return -ENOMEM;
	worker = kthread_create_worker(0, "swdma/%d", chan->chan_id);
	if (IS_ERR(worker)) {
		kvfree(channel->table);
		return PTR_ERR(worker);
	}
	channel->worker = worker;
	kthread_init_work(&channel->work, work);
	channel->gone = false;
	chan->cookie = 0;
	chan->completed_cookie = 0;
	for (unsigned int i = 0; i < nr_descriptors; i++)
		release(channel, &channel->table[i]);
	return nr_descriptors;
}

/* dmaengine has called synchronize() and will not call anything else. */
static void free_chan_resources(struct dma_chan *chan)
{
	struct channel *channel = to_channel(chan);

	drop_all(channel, true);
	kthread_destroy_worker(channel->worker);
	INIT_LIST_HEAD(&channel->free);
	kvfree(channel->table);
}

/* --- The device --- */

static void init_device(struct dma_device *dma, struct device *dev)
{
	dma->dev = dev;
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	/* Every channel belongs to the client that asked for it. */
	dma_cap_set(DMA_PRIVATE, dma->cap_mask);
	dma->copy_align = copy_align;
	dma->directions = BIT(DMA_MEM_TO_MEM);
#ifdef HAVE_DMA_REPORTS_ERRORS
	dma->reports_errors = results && !waits;
#endif
	dma->residue_granularity = DMA_RESIDUE_GRANULARITY_BURST;
	dma->device_alloc_chan_resources = alloc_chan_resources;
	dma->device_free_chan_resources = free_chan_resources;
	dma->device_prep_dma_memcpy = prep_dma_memcpy;
	dma->device_tx_status = tx_status;
	dma->device_issue_pending = issue_pending;
	dma->device_terminate_all = can_terminate ? terminate_all : NULL;
	dma->device_synchronize = synchronize;
	INIT_LIST_HEAD(&dma->channels);
}

static void init_channel(struct channel *channel, struct dma_device *dma)
{
	channel->chan.device = dma;
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->free);
	INIT_LIST_HEAD(&channel->submitted);
	INIT_LIST_HEAD(&channel->issued);
	init_completion(&channel->go_on);
	list_add_tail(&channel->chan.device_node, &dma->channels);
}

static int swdma_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct engine *new;
	int error;

	/* Behind an IOMMU, a DMA address says nothing about memory. */
	if (device_iommu_mapped(dev))
		return -EOPNOTSUPP;
	error = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (error)
		return error;
	dma_set_max_seg_size(dev, max_seg_bytes);
	new = kzalloc(struct_size(new, channels, nr_channels), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	init_device(&new->dma, dev);
	for (unsigned int i = 0; i < nr_channels; i++)
		init_channel(&new->channels[i], &new->dma);
	error = dma_async_device_register(&new->dma);
	if (error) {
		kfree(new);
		return error;
	}
	engine = new;
	return 0;
}

/* No channel is in use: each channel in use holds a reference to this module. */
static void swdma_remove(struct platform_device *pdev)
{
	struct engine *old = engine;

	/* Parameters can be written to until after the module's exit. */
	kernel_param_lock(THIS_MODULE);
	engine = NULL;
	kernel_param_unlock(THIS_MODULE);
	dma_async_device_unregister(&old->dma);
	kfree(old);
}

static struct platform_driver swdma_driver = {
	.probe = swdma_probe,
	.remove = swdma_remove,
	.driver = {
		.name = KBUILD_MODNAME,
		/* Under a client, only vanish_at takes a channel away. */
		.suppress_bind_attrs = true,
	},
};

static struct platform_device *device;

static int __init swdma_init(void)
{
	const struct platform_device_info info = {
		.name = KBUILD_MODNAME,
		.id = PLATFORM_DEVID_NONE,
		.dma_mask = DMA_BIT_MASK(64),
	};
	int error;

	if (!nr_channels || nr_channels > MOST_CHANNELS ||
	    !nr_descriptors || nr_descriptors > MOST_DESCRIPTORS ||
	    copy_align > MOST_COPY_ALIGN || !(max_seg_bytes >> copy_align)) {
		pr_err("nr_channels=%u nr_descriptors=%u copy_align=%u max_seg_bytes=%u: 1 to %u, 1 to %u, at most %u, at least one alignment\n",
		       nr_channels, nr_descriptors, copy_align, max_seg_bytes,
		       MOST_CHANNELS, MOST_DESCRIPTORS, MOST_COPY_ALIGN);
		return -EINVAL;
	}
	device = platform_device_register_full(&info);
	if (IS_ERR(device))
		return PTR_ERR(device);
	error = platform_driver_register(&swdma_driver);
	if (!error && !engine) {
		/* A driver stays registered even if its probe fails. */
		platform_driver_unregister(&swdma_driver);
		error = -ENODEV;
	}
	if (error)
		platform_device_unregister(device);
	return error;
}
module_init(swdma_init);

static void __exit swdma_exit(void)
{
	platform_driver_unregister(&swdma_driver);
	platform_device_unregister(device);
}
module_exit(swdma_exit);

MODULE_DESCRIPTION("A DMA engine in software, with faults on demand");
MODULE_LICENSE("GPL");
