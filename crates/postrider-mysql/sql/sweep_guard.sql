-- Lets this session delete events. Lock, index: none.
set @postrider_sweeping = 1
